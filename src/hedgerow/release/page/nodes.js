// Nodes of the tree: a depth t and a place i among the listed nodes of that depth.

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

function valueOf(t, i) {
  if (t === 0) return { count: total[0], low: total[[3, 1, 5][sure]], high: total[[4, 2, 6][sure]] };
  const { count, low, high, estimates } = depth(t);
  return { count: count[i], low: low[i], high: high[i], estimate: estimates.get(i) };
}

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
