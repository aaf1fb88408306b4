// Counts of areas for a map, out of the blocks that all pictures of the page share.

const sameLevels = (one, other) => one.every((k, a) => k === other[a]);
const isOnPage = (levels) => facts.cuboids.some((one) => sameLevels(one, levels));

// All listed cells of a cuboid: for each axis their codes, and their counts and intervals.
async function cellsOfCuboid(levels) {
  const cuboid = await readCuboid(levels);
  if (!cuboid.codes) {
    cuboid.codes = axes.map(() => new Uint32Array(cuboid.count.length));
    for (let i = 0; i < cuboid.count.length; i++) cuboid.codesOf(i).forEach((code, a) => { cuboid.codes[a][i] = code; });
  }
  return cuboid;
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
    found.set(own[cells.codes[a][i]], valueAt(cells, i));
  }
  return found;
}
