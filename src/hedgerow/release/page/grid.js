// A matrix of two axes that never clips: figures in full where they fit, tiles where they do not.
//
// Each side is { items, all, isSum }: its areas, largest first, as items with `key` and `order`, how
// many there are, and whether their counts are sums of the cells rather than counts of the release.

const MOST_SIDE = 24, MOST_CELLS = 20000;
const WIDEST = 120, LEAST_TILE = 22, LEAST_OF_ALL = 12, BAR = 44, LEAST_COLUMNS = 5; // pixels, but the last
const BESIDE = 300, PAPER = 672; // of the readout beside a matrix, and of a page of A4
const pen = document.createElement("canvas").getContext("2d");
let onPaper = false;

function inked(words, size, weight = 400) {
  pen.font = `${weight} ${size}px ${getComputedStyle(box).fontFamily}`;
  return Math.ceil(pen.measureText(words).width);
}

const longest = (all, size) => Math.max(0, ...all.map((words) => inked(words, size)));
const kept = (side, most) => side.items.slice(0, most).sort((x, y) => x.order - y.order);
// What areas are called where there is little room: in short, unless two are then called alike.
function shortNames(items) {
  const short = items.map(({ brief, name }) => brief || name);
  return new Map(items.map(({ key, name }, k) => [key, new Set(short).size < items.length ? name : short[k]]));
}

// How a matrix is laid out in some room: what its columns hold, how many there are, and how wide.
function layout({ rows, columns, rowName, columnName, top, whole, every }, room) {
  const most = every ? Infinity : MOST_SIDE, wanted = Math.min(columns.all, most);
  const own = kept(rows, most), share = room < 600 ? 0.3 : 0.24;
  const corner = Math.min(96, longest([`${rowName} ↓`, `${columnName} →`], 13) + 6);
  const sum = inked(number.format(whole), onPaper ? 9 : 14, 700) + 14;
  const figures = (size, within) => {
    const head = Math.min(Math.max(corner, longest(own.map(({ name }) => name), 13) + 10), share * within, 190);
    const least = inked(`≠ ${number.format(top)}`, size) + 8;
    return { size, head, sum, within, fit: Math.floor((within - head - sum) / (least + 2)), isTiles: false };
  };
  const sizes = onPaper ? [figures(9, room)] : [figures(14, room - BESIDE), figures(14, room), figures(12, room)];
  const full = sizes.find(({ fit, within }) => fit >= wanted && within > 300);
  if (full) return { ...full, kept: wanted, bands: 1 };
  const last = sizes.pop();
  if (!every && last.fit >= Math.min(wanted, LEAST_COLUMNS)) return { ...last, kept: last.fit, bands: 1 };
  const head = Math.min(longest([...shortNames(own).values()], 12) + 6, 0.28 * room, 190);
  const fit = Math.max(1, Math.floor((room - head - BAR) / (every ? LEAST_OF_ALL : LEAST_TILE)));
  const held = every ? wanted : Math.min(wanted, fit);
  return { size: 0, head, sum: BAR, within: room, fit, isTiles: true, kept: held, bands: Math.ceil(held / fit) };
}

// The shade of a count: light under dark figures, dark under light ones, and nothing between.
function shaded(button, count, top) {
  const part = Math.log1p(count) / Math.log1p(top);
  const shade = part < 0.8 ? 0.9 * part ** 2 : part;
  if (part >= 0.8) button.classList.add("full");
  button.style.backgroundColor = `rgba(var(--tile), ${shade.toFixed(3)})`;
}

function grid(about) {
  const { rows, columns, rowName, columnName, whole, cells, caption, every, again, margins } = about;
  const holder = make("div", { class: "crossing" });
  const doubted = (item) => (isContradicted(item) ? "≠ " : "");
  const cell = (item, isTiles, top) => {
    if (!item) return make("td", { class: "none" }, isTiles ? make("span", { class: "unseen" }, "0") : "0");
    const button = opener(item, `cell r${reliability(item)}${doubt(item)}`, isTiles ? null : doubted(item) + number.format(item.count));
    shaded(button, item.count, top);
    return make("td", {}, button);
  };
  // The count of a whole row or column: a figure, or a bar where tiles stand in the matrix.
  const margin = (item, isTiles, most, isDown) => {
    const figure = doubted(item) + number.format(item.count);
    if (!isTiles) return make("td", { class: "margin" }, item.isSum || item.isWhole ? figure : opener(item, `cell${doubt(item)}`, figure));
    const bar = make("i", { class: isDown ? "down" : "across" });
    bar.style[isDown ? "height" : "width"] = `${100 * item.count / most}%`;
    return make("td", { class: "margin" }, item.isSum || item.isWhole
      ? make("span", { class: "bare" }, bar, make("span", { class: "unseen" }, figure)) : opener(item, `cell${doubt(item)}`, bar));
  };
  const band = (down, across, at, { names: [rowNames, columnNames], isTiles, head, sum, within, size, top }) => {
    const side = (within - head - sum) / across.length;
    const words = across.flatMap((column) => column.name.split(/[\s-]+/));
    const isUpright = isTiles ? longest(across.map(({ key }) => columnNames.get(key)), 12) + 2 > side : longest(words, 13) + 6 > Math.min(side, WIDEST);
    const most = (items) => Math.max(...items.map(({ count }) => count));
    const [tallest, broadest] = [most(across), most(down)];
    const heading = (column) => make("th", { scope: "col" }, isolated(isTiles || isUpright ? columnNames.get(column.key) : column.name));
    const line = (row) => make("tr", {}, make("th", { scope: "row" }, isolated(isTiles ? rowNames.get(row.key) : row.name)),
      ...across.map((column) => cell(at.get(`${row.key},${column.key}`), isTiles, top)), margin(row, isTiles, broadest, false));
    const total = isTiles ? make("td", {}) : margin({ ...whole, isWhole: true }, false);
    const widths = [head, ...across.map(() => null), sum].map((wide) => {
      const column = make("col");
      if (wide) column.style.width = `${wide}px`;
      return column;
    });
    const corner = [`${rowName} ↓`, make("br"), `${columnName} →`];
    const table = make("table", { class: `flow${isTiles ? " tiles" : ""}${isUpright ? " upright" : ""}${size && size < 14 ? " dense" : ""}` },
      make("caption", {}, make("span", {}, caption)), make("colgroup", {}, ...widths),
      make("thead", {}, make("tr", {}, make("th", { class: "corner", scope: "col" }, isTiles ? make("span", { class: "unseen" }, ...corner) : make("span", {}, ...corner)),
        ...across.map(heading), make("th", { scope: "col" }, say("all")))),
      make("tbody", {}, ...down.map(line), make("tr", {}, make("th", { scope: "row" }, say("all")),
        ...across.map((column) => margin(column, isTiles, tallest, true)), total)));
    table.style.maxWidth = `${head + sum + across.length * (isTiles ? 40 : WIDEST)}px`;
    return table;
  };
  const draw = () => {
    const room = onPaper ? PAPER : holder.clientWidth;
    if (!room) return; // not on the page
    const shape = layout({ ...about, whole: whole.count }, room);
    const [down, across] = [kept(rows, every ? Infinity : MOST_SIDE), kept(columns, shape.kept)];
    const at = cells(new Set(down.map(({ key }) => key)), new Set(across.map(({ key }) => key)));
    const seen = [...at.values()], top = Math.max(...seen.map(({ count }) => count));
    const each = Math.ceil(across.length / shape.bands);
    const tables = [...Array(shape.bands).keys()].map((k) => band(down, across.slice(k * each, (k + 1) * each), at, { ...shape, top, names: [down, across].map(shortNames) }));
    const picture = make("div", { class: "scroll matrix", role: "group", "aria-label": say("matrix_told") }, ...tables);
    const isBeside = !shape.isTiles && shape.within < room;
    const panel = make("div", { class: "reading" });
    const key = make("p", { class: "tools", "aria-hidden": "true" }, make("span", {}, say("fuller")), ...sureBoxes(),
      [...seen, ...down, ...across].some(isContradicted) ? doubtKey() : null);
    const left = [[rows, down, "largest_rows"], [columns, across, "largest_columns"]]
      .filter(([all, some]) => all.all > some.length).map(([all, some, words]) => say(words, { kept: some.length, all: all.all }));
    const more = left.length && !every && rows.all * columns.all <= MOST_CELLS
      ? make("button", { type: "button", class: "more", click: again }, say("show_all")) : null;
    const note = make("p", {}, left.length ? `${say("shown_largest", { left: left.join(say("and")) })} ` : "", margins, " ", more);
    holder.replaceChildren(make("div", { class: isBeside ? "beside" : "below" }, picture, panel), key, note);
    roam(picture, ".cell", true);
    if (seen.length) readOut(seen.reduce((one, other) => (other.count > one.count ? other : one)));
  };
  return { nodes: [holder], draw };
}

// One count in full: what stands beside a matrix of which a cell is pointed at or chosen.
function reading(item) {
  const line = (words, told) => make("div", {}, make("dt", {}, words), make("dd", {}, told));
  const isSure = item.isExact;
  return [
    make("p", { class: "of" }, isolated(item.name)), make("strong", {}, number.format(item.count)),
    make("dl", {},
      line(say("interval"), interval(item)),
      isSure ? null : line(say("reliability"), make("span", {}, ...sureMark(item))),
      item.share ? line(sharedOut(shown.view), make("span", {}, ...shareOf(item))) : null),
    isContradicted(item) ? make("small", { class: "doubt" }, `≠ ${contradiction(item)}`) : null,
    item.place ? make("button", { type: "button", class: "into", click: () => choose(item, "here") }, say("open")) : null,
  ].filter(Boolean);
}

// A finger, and a tile that is too small to say what it is, choose a cell first; the readout opens it.
const choosesFirst = (event) => event.detail > 0 && event.currentTarget.closest(".matrix")
  && (event.pointerType === "touch" || event.currentTarget.closest(".tiles"));

function chooseCell(item, button) {
  for (const other of box.querySelectorAll(".chosen")) other.classList.remove("chosen");
  button.classList.add("chosen");
  readOut(item);
}

addEventListener("beforeprint", () => { onPaper = true; if (redraw) redraw(); });
addEventListener("afterprint", () => { onPaper = false; if (redraw) redraw(); });
