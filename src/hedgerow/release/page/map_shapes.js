// Shapes out of their block, brought onto a plane, and as paths of areas and of borders.

const ATLAS_WIDTH = 1000, HALF_TURN = 180, RADIAN = Math.PI / HALF_TURN, WIDE = 140;
const LEAST_LAKE = 4; // of a map 1,000 wide

// Steps from point to point as points of the plane; degrees through an equal-area projection.
function planar(own, points) {
  const { geographic, scale, translate } = own;
  const given = points.map(([x, y]) => [x * scale[0] + translate[0], y * scale[1] + translate[1]]);
  let west = Infinity, east = -Infinity, south = Infinity, north = -Infinity;
  for (const [x, y] of given) {
    west = Math.min(west, x); east = Math.max(east, x); south = Math.min(south, y); north = Math.max(north, y);
  }
  if (!geographic) return given;
  const middle = (west + east) / 2, sixth = (north - south) / 6;
  const raw = east - west > WIDE ? cartography.geoEqualEarthRaw
    : cartography.geoConicEqualAreaRaw((south + sixth) * RADIAN, (north - sixth) * RADIAN);
  return given.map(([x, y]) => raw((x - middle) * RADIAN, Math.max(-89.9, Math.min(89.9, y)) * RADIAN));
}

// Points of the plane within a width, north above; the same for all axes of a page.
function fitted(points) {
  let left = Infinity, right = -Infinity, low = Infinity, high = -Infinity;
  for (const [x, y] of points) {
    left = Math.min(left, x); right = Math.max(right, x); low = Math.min(low, y); high = Math.max(high, y);
  }
  const wide = right - left || 1, tall = high - low || 1;
  const k = Math.min(ATLAS_WIDTH / wide, 0.82 * ATLAS_WIDTH / tall);
  const round = (value) => Math.round(value * 100) / 100;
  const placed = points.map(([x, y]) => [round((x - left) * k), round((high - y) * k)]);
  return { placed, width: Math.max(1, wide * k), height: Math.max(1, tall * k) };
}

async function readShapes(own) {
  const [sizes, across, up, areas, polygons, rings, refs, digits, powers, ...rest] = await parts(own.block);
  const dx = numbers(across), dy = numbers(up), points = [];
  let x = 0, y = 0, first = [0, 0];
  const length = numbers(sizes), ends = starts(length);
  for (let arc = 0, i = 0; arc < length.length; arc++) {
    [x, y] = first;
    for (; i < ends[arc + 1]; i++) {
      points.push([x += unfolded(dx[i]), y += unfolded(dy[i])]);
      if (i === ends[arc]) first = [x, y];
    }
  }
  const plane = fitted(planar(own, points));
  const arcs = Array.from(length, (_size, arc) => plane.placed.slice(ends[arc], ends[arc + 1]));
  const [ringsOf, arcsOf, each] = [numbers(polygons), numbers(rings), numbers(refs).map(unfolded)];
  let p = 0, r = 0, a = 0;
  const geometries = Array.from(numbers(areas), (count) => ({ type: "MultiPolygon",
    arcs: Array.from({ length: count }, () => Array.from({ length: ringsOf[p++] },
      () => Array.from(each.slice(a, a += arcsOf[r++])))) }));
  const lines = (bytes) => (bytes.length ? new TextDecoder().decode(bytes).split("\n") : []);
  const levels = [{ start: [0, 1], labels: [""], names: [] }];
  for (let k = 0; k < own.level; k++) {
    const [family, labels, names] = rest.slice(3 * k, 3 * k + 3);
    levels.push({ start: starts(numbers(family)), labels: lines(labels), names: lines(names) });
  }
  const topology = { type: "Topology", arcs, objects: {} };
  const tens = numbers(powers), km2 = numbers(digits).map((value, i) => value * 10 ** (tens[i] - 6));
  return { ...own, topology, geometries, km2, levels, width: plane.width, height: plane.height, drawn: new Map() };
}

// The nodes of a level below a node of a coarser one: from one on, up to before another.
function nodesBelow(shapes, from, node, to) {
  let [first, end] = [node, node + 1];
  for (let k = from + 1; k <= to; k++) [first, end] = [first, end].map((one) => shapes.levels[k].start[one]);
  return [first, end];
}

function nodeAbove(shapes, level, node, coarser) {
  let at = node;
  for (let k = level; k > coarser; k--) at = owner(shapes.levels[k].start, at);
  return at;
}

function nameOfNode(shapes, level, node) {
  const { labels, names } = shapes.levels[level];
  return names[node] || labels[node];
}

const ringPath = (points) => `M${points.map((point) => point.join(" ")).join("L")}Z`;

// An area as a path, and the box around it; of a coarser level the sum of its finest areas.
function shapeOf(shapes, level, node) {
  const key = `${level}-${node}`;
  if (shapes.drawn.has(key)) return shapes.drawn.get(key);
  const [first, end] = nodesBelow(shapes, level, node, shapes.level);
  const own = shapes.geometries.slice(first, end);
  const whole = own.length === 1 ? own[0] : withoutGaps(shapes, cartography.mergeArcs(shapes.topology, own));
  const { coordinates } = cartography.feature(shapes.topology, whole).geometry;
  const box = [Infinity, Infinity, -Infinity, -Infinity];
  let path = "", largest = 0, middle = null;
  for (const polygon of coordinates) {
    path += polygon.map(ringPath).join("");
    const [x, y, area] = centre(polygon[0]);
    if (area > largest) [largest, middle] = [area, [x, y]];
    for (const [px, py] of polygon[0]) {
      box[0] = Math.min(box[0], px); box[1] = Math.min(box[1], py); box[2] = Math.max(box[2], px); box[3] = Math.max(box[3], py);
    }
  }
  const made = { path, box, middle: middle || [(box[0] + box[2]) / 2, (box[1] + box[3]) / 2], size: largest };
  shapes.drawn.set(key, made);
  return made;
}

// Small holes that no area fills: files whose borders do not quite meet have many.
function withoutGaps(shapes, whole) {
  if (!shapes.uses) {
    shapes.uses = new Uint8Array(shapes.topology.arcs.length);
    for (const { arcs } of shapes.geometries) for (const ring of arcs.flat()) for (const arc of ring) shapes.uses[arc < 0 ? ~arc : arc]++;
  }
  const isGap = (ring) => ring.every((arc) => shapes.uses[arc < 0 ? ~arc : arc] === 1) && centre(lineOf(shapes, ring))[2] < LEAST_LAKE;
  return { ...whole, arcs: whole.arcs.map((polygon) => polygon.filter((ring, i) => i === 0 || !isGap(ring))) };
}

const lineOf = ({ topology }, ring) => ring.flatMap((arc) => (arc < 0 ? topology.arcs[~arc].slice().reverse() : topology.arcs[arc]));

// The centre of a ring's area, and how large that is.
function centre(ring) {
  let x = 0, y = 0, twice = 0;
  const [ox, oy] = ring[0];
  for (let i = 0; i + 1 < ring.length; i++) {
    const [ax, ay, bx, by] = [ring[i][0] - ox, ring[i][1] - oy, ring[i + 1][0] - ox, ring[i + 1][1] - oy];
    const cross = ax * by - bx * ay;
    twice += cross; x += (ax + bx) * cross; y += (ay + by) * cross;
  }
  return twice ? [ox + x / (3 * twice), oy + y / (3 * twice), Math.abs(twice / 2)] : [ox, oy, 0];
}

// Borders between areas of a level; those of the whole where level is 0.
function bordersOf(shapes, level) {
  const key = `borders-${level}`;
  if (!shapes.drawn.has(key)) {
    const nodes = new Map(shapes.geometries.map((one, i) => [one, nodeAbove(shapes, shapes.level, i, level)]));
    const all = { type: "GeometryCollection", geometries: shapes.geometries };
    const lines = cartography.mesh(shapes.topology, all, level
      ? (one, other) => nodes.get(one) !== nodes.get(other) : (one, other) => one === other);
    const isDrawn = (line) => level || line[0].join() !== line.at(-1).join() || centre(line)[2] >= LEAST_LAKE;
    shapes.drawn.set(key, lines.coordinates.filter(isDrawn).map((line) => `M${line.map((point) => point.join(" ")).join("L")}`).join(""));
  }
  return shapes.drawn.get(key);
}
