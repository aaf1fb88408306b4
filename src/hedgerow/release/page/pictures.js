// Pictures of the children of a node: a map, bars of a numeric level, or a matrix of two axes.

const MOST_TILES = 240, MOST_BARS = 200, GROUPED_BARS = 100, MATRIX_SIDE = 24, MOST_CELLS = 20000;
const SMALLEST_TILE = 90; // square pixels
const KEYS = "Arrow keys move, Enter opens, Escape goes back.";

function opener(item, kind, ...children) {
  return make("button", {
    type: "button", class: kind, tabindex: -1, "data-i": item.i, "data-t": item.t,
    "aria-label": spoken(item), "aria-disabled": item.opens ? undefined : "true",
    click: (event) => item.opens && go(item.t, item.i, 2, event.detail === 0 ? "first" : null),
    focus: () => readOut(item), mouseenter: () => readOut(item),
  }, ...children);
}

function readOut(item) {
  const line = box.querySelector(".readout");
  if (line) line.replaceChildren(make("b", {}, isolated(item.name)), sentence(item));
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

// A count in full where there is room for it, in short where there is not.
function fitting(count, across) {
  const full = number.format(count);
  return 8 * full.length + 16 <= across ? full : compact.format(count);
}

function map(items) {
  const picture = make("div", { class: "map", role: "group", "aria-label": `Map of ${items.length} counts, their area in proportion. ${KEYS}` });
  const draw = () => {
    const width = picture.clientWidth, height = picture.clientHeight;
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
      const words = across > 58 && down > 24;
      const tile = k < kept
        ? opener(sorted[k], `tile s${sureness(sorted[k])}${doubt(sorted[k])}`,
          words ? make("b", {}, isContradicted(sorted[k]) ? "≠ " : "", isolated(sorted[k].brief)) : null,
          words && down > 42 ? fitting(sorted[k].count, across) : null)
        : make("div", { class: "tile rest" }, words ? `${number.format(sorted.length - kept)} more` : "");
      Object.assign(tile.style, { left: `${100 * left / width}%`, top: `${100 * top / height}%`,
        width: `${100 * across / width}%`, height: `${100 * down / height}%` });
      return tile;
    }));
    roam(picture, ".tile:not(.rest)");
  };
  return { nodes: [picture, sureKey(items)], draw };
}

function sureKey(items) {
  const boxes = SURE.map((words, k) => make("span", {}, make("span", { class: `key-box s${k}` }), words));
  if (items.some(isContradicted)) boxes.push(doubtKey());
  return make("p", { class: "tools", "aria-hidden": "true" }, "95 % interval:", ...boxes);
}

function doubtKey() {
  return make("span", {}, make("span", { class: "key-box doubt" }), "≠ contradicted by its own noisy counts: quote the estimate");
}

// Where there are more ranges than bars, each bar is the sum of some that lie side by side.
function grouped(items, size) {
  const groups = new Map();
  for (const item of items) {
    const place = Math.floor(item.place / size);
    const known = groups.get(place);
    if (!known) groups.set(place, { ...item, place, first: item.name, of: 1, opens: false });
    else {
      known.count += item.count;
      known.part += item.part;
      known.name = `${known.first} … ${item.name}`;
      known.of += 1;
      known.estimate = undefined;
    }
  }
  return [...groups.values()];
}

function bars(items, possible) {
  const size = possible > MOST_BARS ? Math.ceil(possible / GROUPED_BARS) : 1;
  const drawn = size > 1 ? grouped(items, size) : items;
  const most = Math.max(...drawn.map((item) => (size > 1 ? item.count : Math.max(item.high, item.count))));
  const up = (value) => `${100 * Math.min(1, value / most)}%`;
  const at = new Map(drawn.map((item) => [item.place, item]));
  const columns = [];
  for (let place = 0; place < Math.ceil(possible / size); place++) {
    const item = at.get(place);
    if (!item) {
      columns.push(make("span", { class: "bar" }));
      continue;
    }
    const body = make("i", { class: (size > 1 ? "s1" : `s${sureness(item)}`) + doubt(item) });
    const reach = size > 1 ? null : make("s");
    body.style.height = up(item.count);
    if (reach) Object.assign(reach.style, { bottom: up(item.low), height: up(item.high - item.low) });
    columns.push(opener(item, "bar", body, reach));
  }
  const what = size > 1 ? `${drawn.length} bars, each of ${size} ranges` : `${drawn.length} counts with their intervals`;
  const picture = make("div", { class: "bars", role: "group", "aria-label": `Bars: ${what}. ${KEYS}` }, ...columns);
  const ends = make("div", { class: "ends", "aria-hidden": "true" },
    make("span", {}, items[0].name), make("span", {}, items[items.length - 1].name));
  const key = size > 1 ? make("p", {}, `Each bar is the sum of ${size} ranges side by side; the table has them one by one.`) : sureKey(items);
  return { nodes: [picture, ends, key], draw: () => roam(picture, "button") };
}

// The largest of the sums by name or place of one side, in the order of the codes.
function side(cells, which, most) {
  const sums = new Map();
  for (const cell of cells) {
    const { place } = cell[which];
    const known = sums.get(place) || { place, name: cell[`${which}Name`], count: 0 };
    known.count += cell.count;
    sums.set(place, known);
  }
  const all = [...sums.values()];
  const kept = all.slice().sort((a, b) => b.count - a.count).slice(0, most);
  return { all: all.length, kept: kept.sort((a, b) => a.place - b.place) };
}

function matrix(cells, t, every, again) {
  const most = every ? Infinity : MATRIX_SIDE;
  const rows = side(cells, "row", most), columns = side(cells, "column", most);
  const at = new Map(cells.map((cell) => [`${cell.row.place},${cell.column.place}`, cell]));
  const top = Math.max(...cells.map((cell) => cell.count));
  const [first, second] = [steps[t], steps[t + 1]].sort((a, b) => a[0] - b[0]);
  const [down, across] = [first, second].map(([axis, k]) => `${axes[axis].name} ${axes[axis].levels[k - 1]}`);
  const isDense = columns.kept.length > 9;
  const figure = (isDense ? briefest : number).format;
  const cell = (row, column) => {
    const item = at.get(`${row.place},${column.place}`);
    if (!item) return make("td", { class: "none" }, "0");
    const button = opener(item, `cell${sureness(item) === 3 ? " wide" : ""}${doubt(item)}`, (isContradicted(item) ? "≠ " : "") + figure(item.count));
    const shade = 0.5 * Math.log1p(item.count) / Math.log1p(top);
    button.style.backgroundColor = `rgba(var(--tile), ${shade.toFixed(3)})`;
    return make("td", {}, button);
  };
  const total = (item) => make("td", { class: "sum" }, figure(item.count));
  const head = (item) => make("th", { scope: "col" }, isolated(item.name));
  const body = rows.kept.map((row) => make("tr", {},
    make("th", { scope: "row" }, isolated(row.name)),
    ...columns.kept.map((column) => cell(row, column)), total(row)));
  const table = make("table", {},
    make("caption", {}, make("span", {}, `${down} (rows) by ${across} (columns)`)),
    make("thead", {}, make("tr", {}, make("th", { class: "corner", scope: "col" }, `${down} ↓`, make("br"), `${across} →`),
      ...columns.kept.map(head), make("th", { scope: "col" }, "all"))),
    make("tbody", {}, ...body, make("tr", {}, make("th", { scope: "row" }, "all"),
      ...columns.kept.map(total), total({ count: cells.reduce((a, one) => a + one.count, 0) }))));
  const picture = make("div", { class: `scroll matrix${isDense ? " dense" : ""}`, role: "group", "aria-label": `Matrix, may scroll. ${KEYS}` }, table);
  const key = make("p", { class: "tools", "aria-hidden": "true" }, make("span", {}, "The fuller a cell, the larger its count. ", make("span", { class: "wide" }, "Dotted italics"), ": the 95 % interval is wide or reaches 0."),
    cells.some(isContradicted) ? doubtKey() : null);
  const left = [[rows, "rows"], [columns, "columns"]].filter(([one]) => one.all > one.kept.length)
    .map(([one, words]) => `the ${one.kept.length} largest of ${one.all} ${words}`);
  const more = left.length && rows.all * columns.all <= MOST_CELLS
    ? make("button", { type: "button", class: "more", click: again }, "Show all") : null;
  const note = left.length ? make("p", {}, `Shown are ${left.join(" and ")}; sums are of all. `, more) : null;
  return { nodes: [picture, key, note].filter(Boolean), draw: () => roam(picture, ".cell", true) };
}

// One stop for the Tab key; arrow keys move within.
function roam(picture, which, isGrid) {
  const stops = [...picture.querySelectorAll(which)];
  if (stops.length) stops[0].tabIndex = 0;
  picture.onkeydown = (event) => {
    const at = stops.indexOf(event.target);
    const next = at < 0 ? null : isGrid ? besides(event) : {
      ArrowRight: stops[at + 1], ArrowDown: stops[at + 1], ArrowLeft: stops[at - 1],
      ArrowUp: stops[at - 1], Home: stops[0], End: stops[stops.length - 1],
    }[event.key];
    if (!next) return;
    event.preventDefault();
    event.target.tabIndex = -1;
    next.tabIndex = 0;
    next.focus();
  };
}

// The next cell with a count in the direction of an arrow key.
function besides(event) {
  const move = { ArrowRight: [0, 1], ArrowLeft: [0, -1], ArrowDown: [1, 0], ArrowUp: [-1, 0] }[event.key];
  if (!move) return null;
  let spot = event.target.closest("td");
  while (spot) {
    const row = spot.parentElement;
    const [line, at] = [[...row.parentElement.rows].indexOf(row) + move[0], spot.cellIndex + move[1]];
    const beside = row.parentElement.rows[line];
    spot = line >= 0 && at > 0 && beside ? beside.cells[at] : null;
    const found = spot && spot.querySelector(".cell");
    if (found) return found;
  }
  return null;
}
