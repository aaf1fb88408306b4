// A map of counts, their area in proportion; and what all pictures share.

const MOST_TILES = 240, MOST_BARS = 200, GROUPED_BARS = 100;
const SMALLEST_TILE = 90; // square pixels
const drawers = [], readers = []; // what draws a map of shapes, and what reads these, where a page has some

function opener(item, kind, ...children) {
  return make("button", {
    type: "button", class: kind, tabindex: -1, "data-at": item.at,
    "aria-label": spoken(item), "aria-disabled": item.place ? undefined : "true",
    click: (event) => {
      if (choosesFirst(event)) chooseCell(item, event.currentTarget);
      else if (item.place) choose(item, event.detail === 0 ? "first" : null);
    },
    focus: (event) => readOut(item, event.currentTarget), mouseenter: (event) => box.querySelector(".chosen") || readOut(item, event.currentTarget),
  }, make("span", { class: "seen", "aria-hidden": "true" }, ...children));
}

function readOut(item, by) {
  const around = by && by.closest("figure"), line = (around || box).querySelector(".readout");
  const panel = around ? null : box.querySelector(".reading");
  if (panel) panel.replaceChildren(...reading(item));
  else if (line) line.replaceChildren(make("b", {}, isolated(item.name)), sentence(item));
  for (const one of box.querySelectorAll(".pointed")) one.classList.remove("pointed");
  for (const one of item.at ? box.querySelectorAll(`[data-at="${item.at}"]`) : []) one.classList.add("pointed");
}

// Squarified treemap: rows are filled along the shorter side as long as tiles get squarer.
function tiled(areas, width, height) {
  const found = [];
  let x = 0, y = 0, at = 0;
  while (at < areas.length) {
    const side = Math.min(width, height);
    let sum = 0, worst = Infinity, end = at;
    while (end < areas.length) {
      const more = sum + areas[end];
      const ratio = Math.max(side * side * areas[at] / (more * more),
        more * more / (side * side * areas[end]));
      if (ratio > worst) break;
      worst = ratio; sum = more; end++;
    }
    const thick = sum / side;
    let along = 0;
    for (; at < end; at++) {
      const long = areas[at] / thick;
      found.push(width < height ? [x + along, y, long, thick] : [x, y + along, thick, long]);
      along += long;
    }
    if (width < height) { y += thick; height -= thick; } else { x += thick; width -= thick; }
  }
  return found;
}

function map(items) {
  const picture = make("div", { class: "map", role: "group", "aria-label": say("map", { counts: items.length }) });
  const draw = () => {
    const width = onPaper ? PAPER / 2 : picture.clientWidth, height = picture.clientHeight;
    const sum = items.reduce((a, item) => a + item.count, 0);
    const sorted = items.slice().sort((a, b) => b.count - a.count);
    const scale = width * height / sum;
    let kept = sorted.findIndex((item, k) => k >= MOST_TILES || item.count * scale < SMALLEST_TILE);
    if (kept < 0 || sorted.length - kept < 2) kept = sorted.length;
    const areas = sorted.slice(0, kept).map((item) => item.count * scale);
    const rest = sorted.slice(kept).reduce((a, item) => a + item.count, 0);
    if (rest) areas.push(rest * scale);
    const spots = tiled(areas, width, height);
    picture.replaceChildren(...spots.map(([left, top, across, down], k) => {
      const words = across > 68 && down > 24;
      const tile = k < kept
        ? opener(sorted[k], `tile s${reliability(sorted[k])}${doubt(sorted[k])}`,
          words ? make("b", {}, isContradicted(sorted[k]) ? "≠ " : "", isolated(sorted[k].brief)) : null,
          words && down > 42 && 8 * number.format(sorted[k].count).length + 16 <= across ? number.format(sorted[k].count) : null)
        : make("div", { class: "tile rest" }, words ? say("more", { number: sorted.length - kept }) : "");
      Object.assign(tile.style, { left: `${100 * left / width}%`, top: `${100 * top / height}%`,
        width: `${100 * across / width}%`, height: `${100 * down / height}%` });
      return tile;
    }));
    roam(picture, ".tile:not(.rest)");
  };
  return { nodes: [picture, sureKey(items)], draw };
}

// What the textures mean.
const sureBoxes = () => RELIABILITY.map((words, k) => make("span", {}, make("span", { class: `key-box s${k}` }),
  `${words}: ${say(`reach_${k}`)}`));

function sureKey(items) {
  const boxes = sureBoxes();
  if (items.some(isContradicted)) boxes.push(doubtKey());
  return make("p", { class: "tools", "aria-hidden": "true" }, ...boxes);
}

function doubtKey() {
  return make("span", {}, make("span", { class: "key-box doubt" }), say("doubt_key"));
}
