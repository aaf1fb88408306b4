// A map of the areas of an axis: regions open into their towns; of two axes, flows from and to one.

const atlas = document.getElementById("atlas");
const LISTED = 8, MOST_LISTED_AREAS = 1000, MOST_ARCS = 24, MOST_CHOICES = 500, MOST_LABELS_ON_MAP = 60, GLIDE = 420;
let sheets = [], seen = null, frame = null, glide = 0;

const sheet = () => sheets[seen.flows ? 1 - seen.side : 0];
const across = () => (seen.flows ? sheets[seen.side] : null);
const levelWords = (shapes, k) => axes[shapes.axis].levels[k - 1];

// The cuboid that is shown at a level: of flows, both ends at it; of other axes what was chosen.
function levelsAt(k, chosen = seen.only) {
  return axes.map((_axis, a) => (isOnMap(a) ? k : chosen.has(a) ? chosen.get(a).k : 0));
}
const isOnMap = (a) => a === sheet().axis || (seen.flows && a === across().axis);

// Of each axis that is not on the map, the codes of its coarsest level that has counts of its own.
async function choicesAt(k) {
  const found = [];
  for (const [a, { levels }] of axes.entries()) {
    const l = levels.findIndex((_name, i) => isOnPage(levelsAt(k, new Map(seen.only).set(a, { k: i + 1 })))) + 1;
    if (isOnMap(a) || l === 0) continue;
    for (let up = 1; up <= l; up++) if (!held.has(`level-${a}-${up}`)) await readLevel(a, up);
    if (level(a, l).labels.length <= MOST_CHOICES) found.push({ a, k: l, labels: level(a, l).labels.map((_own, code) => label(a, l, code)) });
  }
  return found;
}
function levelsOnMap() {
  const found = [];
  for (let k = 1; k <= Math.min(...sheets.map((one) => one.level)); k++) if (isOnPage(levelsAt(k))) found.push(k);
  return found;
}
const finerThan = (k) => levelsOnMap().find((one) => one > k);

// What is shown of a node: its count where one is listed; otherwise it was released as 0.
function itemAt(node, k = seen.k) {
  const value = seen.counts.get(node) || { count: 0, low: 0, high: 0, isUnlisted: true };
  return { ...value, node, k, name: nameOfNode(sheet(), k, node), code: sheet().levels[k].labels[node] };
}
const sureOf = (item) => (item.isUnlisted ? NOISE : reliability(item));
const told = (item) => (item.isUnlisted ? say("map_unlisted") : `${number.format(item.count)} (${interval(item)})`);
const tellAll = (item) => `${item.name}: ${told(item)}${item.isUnlisted ? "" : `, ${RELIABILITY[sureOf(item)]}`}`;

async function look(change) {
  Object.assign(seen, change);
  const own = sheet(), other = across();
  if (other && !(seen.focus && seen.focus.k === seen.k)) seen.focus = { k: seen.k, node: await largestWithin(seen.focus) };
  seen.counts = await countsOfNodes(own, own.axis, seen.k, other && { axis: other.axis, shapes: other, level: seen.k, node: seen.focus.node }, seen.only);
  seen.choices = await choicesAt(seen.k);
  const [first, end] = nodesBelow(own, seen.zoom.k, seen.zoom.node, seen.k);
  seen.nodes = Array.from({ length: end - first }, (_one, i) => first + i).filter((node) => hasShape(own, seen.k, node));
  seen.items = seen.nodes.map((node) => itemAt(node));
  seen.breaks = breaksOf(seen.items.map(({ count }) => count));
  if (!seen.items.some(({ node }) => node === seen.chosen)) seen.chosen = null;
  drawAtlas();
}

function hasShape(shapes, k, node) {
  const [first, end] = nodesBelow(shapes, k, node, shapes.level);
  return shapes.geometries.slice(first, end).some((one) => one.arcs.length);
}

// The area below another, at the level shown, that most flows begin or end in.
async function largestWithin(focus) {
  const other = across(), cells = await cellsOfCuboid(levelsAt(seen.k)), sums = new Map();
  const own = nodesOfCodes(other, other.axis, seen.k);
  cells.count.forEach((count, i) => {
    const node = own[cells.codes[other.axis][i]];
    if (!isChosen(cells, i, seen.only)) return;
    if (focus && focus.k < seen.k && nodeAbove(other, seen.k, node, focus.k) !== focus.node) return;
    sums.set(node, (sums.get(node) || 0) + count);
  });
  if (focus && focus.k > seen.k) return nodeAbove(other, focus.k, focus.node, seen.k);
  return [...sums].reduce((best, one) => (one[1] > best[1] ? one : best), [0, -1])[0];
}

function openArea(node) {
  const finer = finerThan(seen.k);
  if (finer) look({ zoom: { k: seen.k, node }, k: finer, chosen: null, entered: true });
  else choose(node);
}

function choose(node) {
  seen.chosen = node;
  atlas.querySelectorAll("[aria-current]").forEach((one) => one.removeAttribute("aria-current"));
  const area = areaOf(node);
  if (area) area.setAttribute("aria-current", "true");
  readArea(node);
}

function back() {
  const { k, node } = seen.zoom;
  if (k === 0) return;
  const offered = levelsOnMap().filter((one) => one < k), up = offered.length ? offered.at(-1) : 0;
  look({ zoom: { k: up, node: nodeAbove(sheet(), k, node, up) }, k: Math.min(k, seen.k), chosen: node, entered: true });
}

const areaOf = (node) => atlas.querySelector(`.area[data-node="${node}"]`);

// ---- the picture ----

function window_() {
  const { width, height } = sheet();
  const pad = seen.zoom.k ? 0.06 : 0.02;
  const [left, top, right, bottom] = seen.zoom.k ? shapeOf(sheet(), seen.zoom.k, seen.zoom.node).box : [0, 0, width, height];
  let [w, h] = [Math.max(right - left, 1) * (1 + 2 * pad), Math.max(bottom - top, 1) * (1 + 2 * pad)];
  const ratio = Math.max(1, width / height);
  if (w / h < ratio) w = h * ratio; else h = w / ratio;
  return [(left + right - w) / 2, (top + bottom - h) / 2, w, h];
}

function glideTo(picture, end) {
  cancelAnimationFrame(glide);
  const begin = frame || end, since = performance.now();
  const still = matchMedia("(prefers-reduced-motion: reduce)").matches || !frame;
  const step = (now) => {
    let part = still ? 1 : Math.min(1, (now - since) / GLIDE);
    part = part < 0.5 ? 4 * part ** 3 : 1 - (2 - 2 * part) ** 3 / 2;
    frame = begin.map((value, i) => value + (end[i] - value) * part);
    picture.setAttribute("viewBox", frame.map((value) => value.toFixed(2)).join(" "));
    if (part < 1) glide = requestAnimationFrame(step);
  };
  step(still ? since : performance.now());
}

function areaPath(item) {
  const sure = sureOf(item), fill = item.isUnlisted ? "#fff" : binColour(binOf(seen.breaks, item.count), sure);
  return svg("path", { class: "area", d: shapeOf(sheet(), seen.k, item.node).path, fill, "data-node": item.node,
    role: "button", tabindex: -1, "aria-label": tellAll(item), "aria-current": item.node === seen.chosen && "true" });
}

function mapPicture() {
  const own = sheet(), end = window_(), unit = end[2] / ATLAS_WIDTH;
  const picture = svg("svg", { class: "atlas-map", role: "group", viewBox: end.join(" "), "aria-label": `${heading()}. ${say("map_keys")}` }, hatch("atlas-hatch", 7 * unit));
  if (seen.zoom.k) {
    own.levels[seen.zoom.k].labels.forEach((_label, node) => {
      if (node === seen.zoom.node || !hasShape(own, seen.zoom.k, node)) return;
      picture.append(svg("path", { class: "beside", d: shapeOf(own, seen.zoom.k, node).path, "data-beside": node }));
    });
  }
  picture.append(...seen.items.map(areaPath));
  for (const one of levelsOnMap().filter((k) => k < seen.k)) picture.append(svg("path", { class: "border", "data-k": one, d: bordersOf(own, one) }));
  picture.append(svg("path", { class: "border outline", d: bordersOf(own, 0) }));
  if (seen.flows) picture.append(svg("path", { class: "focus", d: shapeOf(across(), seen.k, seen.focus.node).path }), ...arcPaths(unit));
  picture.append(svg("path", { class: "mark casing" }), svg("path", { class: "mark" }), svg("g", { class: "names" }));
  const first = picture.querySelector(".area[aria-current]") || picture.querySelector(".area");
  if (first) first.setAttribute("tabindex", 0);
  return picture;
}

// Flows as arcs, the wider the larger; what is mostly noise has none.
function arcPaths(unit) {
  const from = shapeOf(across(), seen.k, seen.focus.node).middle;
  const shown = seen.items.filter((item) => item.count > 0 && sureOf(item) !== NOISE && (item.node !== seen.focus.node || sheet() === across()))
    .filter((item) => Math.hypot(...shapeOf(sheet(), seen.k, item.node).middle.map((v, i) => v - from[i])) > 1e-6)
    .sort((x, y) => y.count - x.count).slice(0, MOST_ARCS);
  const top = shown.length ? shown[0].count : 1;
  return shown.reverse().map((item) => {
    const to = shapeOf(sheet(), seen.k, item.node).middle, [dx, dy] = [to[0] - from[0], to[1] - from[1]];
    const bend = [(from[0] + to[0]) / 2 + 0.22 * dy, (from[1] + to[1]) / 2 - 0.22 * dx];
    return svg("path", { class: `arc${sureOf(item) === ROUGH ? " rough" : ""}`, "stroke-width": (1 + 7 * Math.sqrt(item.count / top)).toFixed(1),
      d: `M${from.join(" ")}Q${bend.map((v) => v.toFixed(2)).join(" ")} ${to.join(" ")}` });
  });
}

// The usual side in pixels of the areas of a level that are in view.
function usualSide(k, pixel) {
  const own = sheet(), [first, end] = k > seen.zoom.k ? nodesBelow(own, seen.zoom.k, seen.zoom.node, k) : [0, own.levels[k].labels.length];
  const sides = [];
  for (let node = first; node < end; node++) if (hasShape(own, k, node)) sides.push(Math.sqrt(shapeOf(own, k, node).size) / pixel);
  return sides.sort((x, y) => x - y)[sides.length >> 1] || 0;
}

// Lines finer where areas are small, and names where there is room for them.
function dressAreas(picture) {
  const pixel = window_()[2] / (picture.clientWidth || ATLAS_WIDTH);
  const width = (part, k, least, most) => Math.max(least, Math.min(most, part * usualSide(k, pixel))).toFixed(2);
  picture.style.setProperty("--seam", width(0.07, seen.k, 0.05, 0.7));
  picture.style.setProperty("--shore", width(0.12, sheet().level, 0.25, 0.8));
  for (const line of picture.querySelectorAll(".border[data-k]")) line.style.strokeWidth = width(0.02, Number(line.dataset.k), 0.3, 1.6);
  nameAreas(picture, pixel);
}

// The largest areas first.
function nameAreas(picture, pixel) {
  const size = 12.5 * pixel, taken = [];
  const holder = picture.querySelector(".names");
  const large = seen.items.map((item) => ({ item, shape: shapeOf(sheet(), seen.k, item.node) }))
    .sort((x, y) => y.shape.size - x.shape.size).slice(0, MOST_LABELS_ON_MAP);
  const names = large.map(({ item, shape }) => {
    const across_ = shape.box[2] - shape.box[0], full = number.format(item.count);
    const figure = item.isUnlisted ? "0" : sureOf(item) === NOISE ? RELIABILITY[NOISE] : 0.56 * size * full.length < 1.1 * across_ ? full : compact.format(item.count);
    const wide = 0.56 * size * Math.max(item.name.length, figure.length), [x, y] = shape.middle;
    const box = [x - wide / 2, y - 1.3 * size, x + wide / 2, y + 1.3 * size];
    if (wide > 1.25 * across_ || 2 * size > shape.box[3] - shape.box[1]) return null;
    if (taken.some((one) => box[0] < one[2] && one[0] < box[2] && box[1] < one[3] && one[1] < box[3])) return null;
    taken.push(box);
    const text = (words, dy, kind) => {
      const made = svg("text", { x, y: y + dy * size, class: kind }, words);
      made.style.fontSize = `${size}px`;
      made.style.strokeWidth = `${0.24 * size}px`;
      return made;
    };
    const isOnDark = !item.isUnlisted && isDark(binOf(seen.breaks, item.count), sureOf(item));
    return svg("g", { class: isOnDark && "on-dark" }, text(item.name, -0.15, "name"), text(figure, 1, "figure"));
  });
  holder.replaceChildren(...names.filter(Boolean));
}

// The area that was chosen, or else the one with the largest count.
function readUsual() {
  if (seen.chosen !== null) readArea(seen.chosen);
  else if (seen.items.length) readArea(seen.items.reduce((x, y) => (y.count > x.count ? y : x)).node);
}

function drawAtlas() {
  const focused = atlas.contains(document.activeElement), picture = mapPicture();
  const key = make("div", { class: "atlas-key" }, fanOf(seen.breaks), make("div", {},
    seen.items.some(({ isUnlisted }) => isUnlisted) ? make("p", {}, make("i", { class: "zero", "aria-hidden": "true" }), say("map_none")) : null,
    make("p", {}, say("map_help")), make("p", { class: "no-print" }, say("map_keys"))));
  atlas.replaceChildren(make("h3", { class: "atlas-heading" }, isolated(heading())), ...[crumbsOfMap(), toolsOfMap()].filter(Boolean), 
    make("div", { class: "atlas-grid" }, make("figure", {}, picture), make("div", { class: "atlas-read", role: "status" }), key, tableOfMap()));
  glideTo(picture, window_());
  dressAreas(picture);
  readUsual();
  if (focused && seen.entered) (picture.querySelector('.area[tabindex="0"]') || atlas).focus({ preventScroll: true });
  seen.entered = false;
  atlas.dataset.ready = "true";
}

// ---- pointer and keys ----

const nodeUnder = (event) => { const area = event.target.closest && event.target.closest(".area"); return area ? Number(area.dataset.node) : null; };
const ARROWS = { ArrowLeft: [-1, 0], ArrowRight: [1, 0], ArrowUp: [0, -1], ArrowDown: [0, 1] };

// The nearest area in a direction, those straight ahead first.
function neighbour(node, [ux, uy]) {
  const from = shapeOf(sheet(), seen.k, node).middle;
  let best = null, least = Infinity;
  for (const other of seen.nodes) {
    const to = shapeOf(sheet(), seen.k, other).middle, [dx, dy] = [to[0] - from[0], to[1] - from[1]];
    const ahead = dx * ux + dy * uy, aside = Math.abs(dx * uy) + Math.abs(dy * ux);
    if (other !== node && ahead > 0 && ahead + 2.2 * aside < least) [best, least] = [other, ahead + 2.2 * aside];
  }
  return best;
}

function keyOnMap(event) {
  const node = nodeUnder(event);
  if (event.key === "Escape" && seen.zoom.k) { back(); event.stopPropagation(); return; }
  if (node === null) return;
  if (event.key === "Enter" || event.key === " ") { event.preventDefault(); openArea(node); return; }
  const next = ARROWS[event.key] && neighbour(node, ARROWS[event.key]);
  if (ARROWS[event.key]) event.preventDefault();
  if (next === null || next === undefined) return;
  areaOf(node).setAttribute("tabindex", -1);
  areaOf(next).setAttribute("tabindex", 0);
  areaOf(next).focus({ preventScroll: true });
}

async function openAtlas() {
  sheets = await Promise.all(facts.maps.map(readShapes));
  seen = { flows: sheets.length > 1, side: 0, focus: null, zoom: { k: 0, node: 0 }, chosen: null, only: new Map(), choices: [] };
  if (seen.flows && !levelsOnMap().length) seen.flows = false;
  if (!levelsOnMap().length) { document.getElementById("map").hidden = true; return; }
  atlas.addEventListener("click", (event) => {
    const node = nodeUnder(event), beside = event.target.dataset.beside;
    const isRead = node === seen.chosen || event.pointerType !== "touch";
    if (node !== null) { if (seen.flows || !isRead) choose(node); else openArea(node); }
    if (beside !== undefined) look({ zoom: { k: seen.zoom.k, node: Number(beside) }, chosen: null });
  });
  for (const kind of ["mouseover", "focusin"]) atlas.addEventListener(kind, (event) => { const node = nodeUnder(event); if (node !== null) readArea(node); });
  atlas.addEventListener("mouseleave", readUsual);
  atlas.addEventListener("keydown", keyOnMap);
  addEventListener("sureness", () => look({}));
  addEventListener("resize", () => { const picture = atlas.querySelector(".atlas-map"); if (picture) dressAreas(picture); });
  await look({ k: levelsOnMap()[0] });
}

if (atlas && typeof DecompressionStream !== "undefined") openAtlas();
