// Nodes of the tree: a depth t and a place i among the listed nodes of that depth, in tree order.

const chain = facts.released || [0, ...axes[0].levels.keys()].map((_k, t) => [t]);
const last = facts.cuboids.length - 1; // the deepest that the page carries
// The axis that each step refines, and the level that it refines it to.
const steps = chain.slice(1).map((levels, t) => {
  const axis = levels.findIndex((k, a) => k > chain[t][a]);
  return [axis, levels[axis]];
});
const depths = chain.map((levels) => wordsOf(chain[0], levels));
const depth = (t) => held.get(`depth-${t}`);

async function need(deepest) {
  for (let t = 0; t <= Math.min(deepest, last); t++) {
    if (!held.has(`depth-${t}`)) held.set(`depth-${t}`, familiesOf(t, await readCuboid(chain[t])));
  }
}

// The cells of a depth by families: where each begins, of each node the cell and the place among its
// siblings, and of each cell the node.
function familiesOf(t, cuboid) {
  const n = cuboid.flat.length, order = new Uint32Array(n), place = new Uint32Array(n), nodes = new Uint32Array(n);
  if (t === 0) return { cuboid, start: [0, n], order, place, nodes };
  const [axis, k] = steps[t - 1], first = level(axis, k).start, upper = depth(t - 1);
  const parents = new Uint32Array(n), steps_ = new Uint32Array(n), sizes = new Uint32Array(upper.order.length);
  for (let i = 0; i < n; i++) {
    const codes = cuboid.codesOf(i), code = codes[axis];
    codes[axis] = owner(first, code);
    const above = codes.reduce((number, own, a) => number * upper.cuboid.sizes[a] + own, 0);
    parents[i] = upper.nodes[owner(upper.cuboid.flat, above)];
    steps_[i] = code - first[codes[axis]];
    sizes[parents[i]]++;
  }
  const start = starts(sizes), next = start.slice();
  for (let i = 0; i < n; i++) {
    const node = nodes[i] = next[parents[i]]++;
    order[node] = i;
    place[node] = steps_[i];
  }
  return { cuboid, start, order, place, nodes };
}

function lineage(t, i) {
  const path = [i];
  for (let d = t; d > 0; d--) path.unshift(owner(depth(d).start, path[0]));
  return path;
}

// The code of each axis at every depth of a path, from everything down.
function codesAlong(path) {
  const all = [axes.map(() => ({ level: 0, code: 0 }))];
  for (let d = 1; d < path.length; d++) {
    const [axis, k] = steps[d - 1];
    const codes = all[d - 1].slice();
    const first = level(axis, k).start[codes[axis].code];
    codes[axis] = { level: k, code: first + depth(d).place[path[d]] };
    all.push(codes);
  }
  return all;
}

const valueOf = (t, i) => valueAt(depth(t).cuboid, depth(t).order[i]);

function child(t, i, codes, whole) {
  const [axis, k] = steps[t - 1];
  const place = depth(t).place[i];
  const code = level(axis, k).start[codes[axis].code] + place;
  const value = valueOf(t, i);
  const [name, brief] = [label(axis, k, code), ending(axis, k, code)];
  return { t, i, place, name, brief, areas: [[axis, k, code]], ...value, part: value.count / whole, opens: t < last };
}

function childrenOf(t, i, codes) {
  const { start } = depth(t + 1);
  const whole = valueOf(t, i).count;
  const found = [];
  for (let j = start[i]; j < start[i + 1]; j++) found.push(child(t + 1, j, codes, whole));
  return found;
}

// The cells two steps below a node, with their places on the two axes that are refined.
function cellsOf(t, i, codes) {
  const cells = [];
  const whole = valueOf(t, i).count;
  const [axis, k] = steps[t];
  const rowsFirst = axis < steps[t + 1][0];
  for (const upper of childrenOf(t, i, codes)) {
    const below = codes.slice();
    below[axis] = { level: k, code: level(axis, k).start[codes[axis].code] + upper.place };
    for (const cell of childrenOf(t + 1, upper.i, below)) {
      cell.part = cell.count / whole;
      [cell.row, cell.column] = rowsFirst ? [upper, cell] : [cell, upper];
      cell.areas = [...cell.row.areas, ...cell.column.areas];
      cell.rowName = cell.row.name;
      cell.columnName = cell.column.name;
      cells.push(cell);
    }
  }
  for (const cell of cells) cell.name = `${cell.rowName} → ${cell.columnName}`;
  return cells;
}
