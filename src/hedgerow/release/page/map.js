// A map of the areas of an axis, where it has shapes: regions open into their towns, flows are arcs.

const MOST_ARCS = 24, MOST_LABELS_ON_MAP = 60, GLIDE = 420;
const sheets = new Map(); // for each axis with shapes these, once they are read
let seen = null, frame = null, glide = 0;

const nodeOf = (a, { c, code }) => (c ? nodesOfCodes(sheets.get(a), a, c)[code] : 0);

// The node of the map that each code of the page stands for: both have the same codes as text.
function nodesOfCodes(shapes, a, k) {
  const key = `nodes-${a}-${k}`;
  if (!held.has(key)) {
    const places = new Map(shapes.levels[k].labels.map((label, node) => [label, node]));
    held.set(key, level(a, k).labels.map((_label, code) => places.get(wholeCode(a, k, code))));
  }
  return held.get(key);
}

// The map of a view that is split along one axis; null where it has no shapes at that level.
function atlasOf(view, a, items) {
  const shapes = sheets.get(a), k = view[a].k, b = 1 - a;
  if (!shapes || k > shapes.level) return null;
  const nodes = nodesOfCodes(shapes, a, k), zoom = { k: view[a].c, node: nodeOf(a, view[a]) };
  const kinds = kindsOf(view, a, items), kind = kinds.find(({ key }) => key === coloured) || kinds[0];
  if (kind.of) for (const item of items) item.measured = { ...kind, ...kind.of(item) };
  const known = new Map(items.map((item) => [nodes[item.codes[a]], item]));
  const [from, to] = nodesBelow(shapes, zoom.k, zoom.node, k);
  const focus_ = axes.length === 2 && sheets.has(b) && view[b].c ? { shapes: sheets.get(b), k: view[b].c, node: nodeOf(b, view[b]) } : null;
  seen = { a, k, shapes, zoom, focus: focus_, breaks: breaksOf(items.map(valueOf), kind), items: [] };
  for (let node = from; node < to; node++) {
    if (hasShape(shapes, k, node)) seen.items.push({ ...(known.get(node) || { count: 0, isUnlisted: true, name: nameOfNode(shapes, k, node) }), node, short: nameOfNode(shapes, k, node) });
  }
  const picture = mapPicture(), choice = kindChoice(kinds, kind);
  const key = make("div", { class: "atlas-key" }, keyOfColours(seen.breaks, kind), seen.items.some(({ isUnlisted }) => isUnlisted)
    ? make("p", {}, make("i", { class: "zero", "aria-hidden": "true" }), say("map_none")) : null);
  const draw = () => { glideTo(picture, window_()); dressAreas(picture); outline(); };
  return { nodes: [make("div", {}, ...[choice, picture].filter(Boolean)), key], draw };
}

function hasShape(shapes, k, node) {
  const [first, end] = nodesBelow(shapes, k, node, shapes.level);
  return shapes.geometries.slice(first, end).some((one) => one.arcs.length);
}

const areaOf = (node) => box.querySelector(`.area[data-node="${node}"]`);

// A line around the area that is asked for.
function outline() {
  const { place } = shown, { a, k, shapes } = seen;
  const node = place[a].c >= k ? nodeOf(a, within(place, place.map(({ c }, b) => (b === a ? k : c)))[a]) : undefined;
  for (const line of box.querySelectorAll(".mark")) line.setAttribute("d", node === undefined ? "" : shapeOf(shapes, k, node).path);
}

// ---- the picture ----

function window_() {
  const { shapes, zoom } = seen, { width: wide, height } = shapes;
  const pad = zoom.k ? 0.06 : 0.02;
  const [left, top, right, bottom] = zoom.k ? shapeOf(shapes, zoom.k, zoom.node).box : [0, 0, wide, height];
  let [w, h] = [Math.max(right - left, 1) * (1 + 2 * pad), Math.max(bottom - top, 1) * (1 + 2 * pad)];
  const ratio = Math.max(1, wide / height);
  if (w / h < ratio) w = h * ratio; else h = w / ratio;
  return [(left + right - w) / 2, (top + bottom - h) / 2, w, h];
}

function glideTo(picture, end) {
  cancelAnimationFrame(glide);
  const since = performance.now(), begin = frame || end;
  const still = onPaper || matchMedia("(prefers-reduced-motion: reduce)").matches || !frame;
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
  const fill = item.isUnlisted ? "#fff" : binColour(binOf(seen.breaks, valueOf(item)), sureOf(item));
  const path = svg("path", { class: "area", d: shapeOf(seen.shapes, seen.k, item.node).path, fill, "data-node": item.node, "data-at": item.at,
    role: "button", tabindex: -1, "aria-label": spoken(item), "aria-disabled": !item.place && "true" });
  path.addEventListener("click", (event) => {
    if (!item.place) return;
    const isRead = path.classList.contains("chosen") || event.pointerType !== "touch";
    if (isRead) choose(item, null); else chooseCell(item, path);
  });
  path.addEventListener("mouseenter", () => readOut(item));
  path.addEventListener("focus", () => readOut(item));
  return path;
}

function mapPicture() {
  const { shapes, zoom, k, a } = seen, end = window_(), unit_ = end[2] / ATLAS_WIDTH;
  const picture = svg("svg", { class: "atlas-map", role: "group", viewBox: end.join(" "), "aria-label": `${heading.textContent}. ${say("map_keys")}` }, hatch("atlas-hatch", 7 * unit_));
  if (zoom.k) {
    nodesOfCodes(shapes, a, zoom.k).forEach((node, code) => {
      if (node === undefined || node === zoom.node || !hasShape(shapes, zoom.k, node)) return;
      const beside = svg("path", { class: "beside", d: shapeOf(shapes, zoom.k, node).path });
      beside.addEventListener("click", () => {
        const place = shown.view.map((one, b) => (b === a ? { c: zoom.k, code } : { c: one.c, code: one.code }));
        go({ place, view: usual(place) }, null);
      });
      picture.append(beside);
    });
  }
  picture.append(...seen.items.map(areaPath));
  for (let one = 1; one < k; one++) picture.append(svg("path", { class: "border", "data-k": one, d: bordersOf(shapes, one) }));
  picture.append(svg("path", { class: "border outline", d: bordersOf(shapes, 0) }));
  if (seen.focus) picture.append(svg("path", { class: "focus", d: shapeOf(seen.focus.shapes, seen.focus.k, seen.focus.node).path }), ...arcPaths());
  picture.append(svg("path", { class: "mark casing" }), svg("path", { class: "mark" }), svg("g", { class: "names" }));
  const chosen = areasOf(shown.place);
  const stop = [...picture.querySelectorAll(".area")].find((one) => one.dataset.at === chosen) || picture.querySelector(".area");
  if (stop) stop.setAttribute("tabindex", 0);
  picture.addEventListener("keydown", keyOnMap);
  return picture;
}

// Flows as arcs, the wider the larger; what is mostly noise has none.
function arcPaths() {
  const { shapes, focus: at, k } = seen, from = shapeOf(at.shapes, at.k, at.node).middle;
  const drawn = seen.items.filter((item) => item.count > 0 && reliability(item) !== NOISE)
    .filter((item) => Math.hypot(...shapeOf(shapes, k, item.node).middle.map((v, i) => v - from[i])) > 1e-6)
    .sort((x, y) => y.count - x.count).slice(0, MOST_ARCS);
  const top = drawn.length ? drawn[0].count : 1;
  return drawn.reverse().map((item) => {
    const to = shapeOf(shapes, k, item.node).middle, [dx, dy] = [to[0] - from[0], to[1] - from[1]];
    const bend = [(from[0] + to[0]) / 2 + 0.22 * dy, (from[1] + to[1]) / 2 - 0.22 * dx];
    return svg("path", { class: `arc${reliability(item) === ROUGH ? " rough" : ""}`, "stroke-width": (1 + 7 * Math.sqrt(item.count / top)).toFixed(1),
      d: `M${from.join(" ")}Q${bend.map((v) => v.toFixed(2)).join(" ")} ${to.join(" ")}` });
  });
}

// The usual side in pixels of the areas of a level that are in view.
function usualSide(k, pixel) {
  const { shapes, zoom } = seen, [begin, end] = k > zoom.k ? nodesBelow(shapes, zoom.k, zoom.node, k) : [0, shapes.levels[k].labels.length];
  const sides = [];
  for (let node = begin; node < end; node++) if (hasShape(shapes, k, node)) sides.push(Math.sqrt(shapeOf(shapes, k, node).size) / pixel);
  return sides.sort((x, y) => x - y)[sides.length >> 1] || 0;
}

// Lines finer where areas are small, and names where there is room for them.
function dressAreas(picture) {
  const pixel = window_()[2] / (picture.clientWidth || ATLAS_WIDTH);
  const thick = (part, k, least, most) => Math.max(least, Math.min(most, part * usualSide(k, pixel))).toFixed(2);
  picture.style.setProperty("--seam", thick(0.07, seen.k, 0.05, 0.7));
  picture.style.setProperty("--shore", thick(0.12, seen.shapes.level, 0.25, 0.8));
  for (const line of picture.querySelectorAll(".border[data-k]")) line.style.strokeWidth = thick(0.02, Number(line.dataset.k), 0.3, 1.6);
  nameAreas(picture, pixel);
}

// The largest areas first.
function nameAreas(picture, pixel) {
  const size = 12.5 * pixel, taken = [];
  const large = seen.items.map((item) => ({ item, shape: shapeOf(seen.shapes, seen.k, item.node) }))
    .sort((x, y) => y.shape.size - x.shape.size).slice(0, MOST_LABELS_ON_MAP);
  const names = large.map(({ item, shape }) => {
    const across = shape.box[2] - shape.box[0], full = item.measured ? item.measured.value !== undefined && asSure(item.measured) : number.format(item.count);
    const figure = item.isUnlisted ? "0" : sureOf(item) === NOISE ? RELIABILITY[NOISE] : 0.56 * size * full.length < 1.1 * across ? full : item.measured ? full : compact.format(item.count);
    const wide = 0.56 * size * Math.max(item.short.length, figure.length), [x, y] = shape.middle;
    const place = [x - wide / 2, y - 1.3 * size, x + wide / 2, y + 1.3 * size];
    if (wide > 1.25 * across || 2 * size > shape.box[3] - shape.box[1]) return null;
    if (taken.some((one) => place[0] < one[2] && one[0] < place[2] && place[1] < one[3] && one[1] < place[3])) return null;
    taken.push(place);
    const text = (words, dy, kind) => {
      const made = svg("text", { x, y: y + dy * size, class: kind }, words);
      made.style.fontSize = `${size}px`;
      made.style.strokeWidth = `${0.24 * size}px`;
      return made;
    };
    const isOnDark = !item.isUnlisted && isDark(binOf(seen.breaks, valueOf(item)), sureOf(item));
    return svg("g", { class: isOnDark && "on-dark" }, text(item.short, -0.15, "name"), text(figure, 1, "figure"));
  });
  picture.querySelector(".names").replaceChildren(...names.filter(Boolean));
}

// ---- keys ----

const ARROWS = { ArrowLeft: [-1, 0], ArrowRight: [1, 0], ArrowUp: [0, -1], ArrowDown: [0, 1] };

// The nearest area in a direction, those straight ahead first.
function neighbour(node, [ux, uy]) {
  const from = shapeOf(seen.shapes, seen.k, node).middle;
  let best = null, least = Infinity;
  for (const { node: other } of seen.items) {
    const to = shapeOf(seen.shapes, seen.k, other).middle, [dx, dy] = [to[0] - from[0], to[1] - from[1]];
    const ahead = dx * ux + dy * uy, aside = Math.abs(dx * uy) + Math.abs(dy * ux);
    if (other !== node && ahead > 0 && ahead + 2.2 * aside < least) [best, least] = [other, ahead + 2.2 * aside];
  }
  return best;
}

function keyOnMap(event) {
  const area = event.target.closest(".area");
  if (!area) return;
  const node = Number(area.dataset.node), item = seen.items.find((one) => one.node === node);
  if (event.key === "Enter" || event.key === " ") {
    event.preventDefault();
    if (item.place) choose(item, "first");
  }
  if (!ARROWS[event.key]) return;
  event.preventDefault();
  const next = neighbour(node, ARROWS[event.key]);
  if (next === null) return;
  area.setAttribute("tabindex", -1);
  areaOf(next).setAttribute("tabindex", 0);
  areaOf(next).focus({ preventScroll: true });
}

drawers.push(atlasOf);
readers.push(async () => {
  for (const own of facts.maps) sheets.set(own.axis, await readShapes(own));
});
