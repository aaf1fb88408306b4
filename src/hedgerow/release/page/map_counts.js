// Counts of areas for a map, out of the blocks that all pictures of the page share.

const isCube = Array.isArray(facts.cuboids);
const depthLevels = isCube ? [] : [axes.map(() => 0)];
if (!isCube) {
  for (const [axis, k] of steps.slice(0, Math.max(0, last))) {
    const next = depthLevels.at(-1).slice();
    next[axis] = k;
    depthLevels.push(next);
  }
}
const sameLevels = (one, other) => one.every((k, a) => k === other[a]);
const isOnPage = (levels) => (isCube ? facts.cuboids : depthLevels).some((one) => sameLevels(one, levels));

// All listed cells of a cuboid: for each axis their codes, and their counts and intervals.
async function cellsOfCuboid(levels) {
  const key = `map-${levels.join("-")}-${sure}`;
  if (!held.has(key)) held.set(key, await (isCube ? cubeCells(levels) : chainCells(levels)));
  return held.get(key);
}

async function chainCells(levels) {
  const t = depthLevels.findIndex((one) => sameLevels(one, levels));
  await need(t);
  let codes = axes.map(() => new Uint32Array(1));
  for (let d = 1; d <= t; d++) {
    const { start, place } = depth(d), [axis, k] = steps[d - 1], first = level(axis, k).start;
    const below = axes.map(() => new Uint32Array(place.length));
    for (let family = 0; family + 1 < start.length; family++) {
      for (let i = start[family]; i < start[family + 1]; i++) {
        for (let a = 0; a < codes.length; a++) below[a][i] = codes[a][family];
        below[axis][i] = first[codes[axis][family]] + place[i];
      }
    }
    codes = below;
  }
  if (t > 0) return { codes, ...depth(t) };
  const { count, low, high } = valueOf(0, 0);
  return { codes, count: [count], low: [low], high: [high], estimates: new Map() };
}

async function cubeCells(levels) {
  for (const [a, k] of levels.entries()) {
    for (let l = 1; l <= k; l++) if (!held.has(`level-${a}-${l}`)) await readLevel(a, l);
  }
  const name = levels.join("-");
  if (!held.has(`cuboid-${name}`)) await readCuboid(name);
  const { flat, count, low, high, unbiased, doubts } = held.get(`cuboid-${name}`);
  const sizes = levels.map((k, a) => (k ? level(a, k).labels.length : 1));
  const codes = axes.map(() => new Uint32Array(flat.length));
  flat.forEach((cell, i) => {
    let rest = cell;
    for (let a = sizes.length - 1; a >= 0; a--) {
      codes[a][i] = rest % sizes[a];
      rest = Math.floor(rest / sizes[a]);
    }
  });
  return { codes, count, low, high, estimates: new Map([...doubts].map((i) => [i, unbiased[i]])) };
}

// The node of the map that each code of the page stands for: both have the same codes as text.
function nodesOfCodes(shapes, a, k) {
  const key = `nodes-${a}-${k}`;
  if (!held.has(key)) {
    const places = new Map(shapes.levels[k].labels.map((label, node) => [label, node]));
    held.set(key, level(a, k).labels.map((_label, code) => places.get(wholeCode(a, k, code))));
  }
  return held.get(key);
}

// Whether a cell has the codes that were chosen of other axes.
const isChosen = (cells, i, only) => [...only].every(([b, { code }]) => cells.codes[b][i] === code);

// The counts of the nodes of a level; of flows, those from or to one node of the other axis.
async function countsOfNodes(shapes, a, k, other, only) {
  const levels = axes.map((_axis, b) => (b === a ? k : other && b === other.axis ? other.level : only.has(b) ? only.get(b).k : 0));
  const cells = await cellsOfCuboid(levels), found = new Map();
  const own = nodesOfCodes(shapes, a, k);
  const fixed = other && nodesOfCodes(other.shapes, other.axis, other.level);
  for (let i = 0; i < cells.count.length; i++) {
    if (other && fixed[cells.codes[other.axis][i]] !== other.node) continue;
    if (!isChosen(cells, i, only)) continue;
    found.set(own[cells.codes[a][i]], {
      count: cells.count[i], low: cells.low[i], high: cells.high[i], estimate: cells.estimates.get(i),
    });
  }
  return found;
}
