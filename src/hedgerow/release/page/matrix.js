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
    const body = make("i", { class: (size > 1 ? "s1" : `s${reliability(item)}`) + doubt(item) });
    const reach = size > 1 ? null : make("s");
    body.style.height = up(item.count);
    if (reach) Object.assign(reach.style, { bottom: up(item.low), height: up(item.high - item.low) });
    columns.push(opener(item, "bar", body, reach));
  }
  const what = size > 1 ? say("bars_grouped", { bars: drawn.length, size }) : say("bars_each", { bars: drawn.length });
  const picture = make("div", { class: "bars", role: "group", "aria-label": say("bars", { what }) }, ...columns);
  const ends = make("div", { class: "ends", "aria-hidden": "true" },
    make("span", {}, items[0].name), make("span", {}, items[items.length - 1].name));
  const key = size > 1 ? make("p", {}, say("bar_sums", { size })) : sureKey(items);
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
  const [down, across] = [first, second].map(([axis, k]) => levelName(axis, k));
  const isDense = columns.kept.length > 9;
  const figure = (isDense ? briefest : number).format;
  const cell = (row, column) => {
    const item = at.get(`${row.place},${column.place}`);
    if (!item) return make("td", { class: "none" }, "0");
    const button = opener(item, `cell r${reliability(item)}${doubt(item)}`, (isContradicted(item) ? "≠ " : "") + figure(item.count));
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
    make("caption", {}, make("span", {}, say("matrix_caption", { rows: down, columns: across }))),
    make("thead", {}, make("tr", {}, make("th", { class: "corner", scope: "col" }, `${down} ↓`, make("br"), `${across} →`),
      ...columns.kept.map(head), make("th", { scope: "col" }, say("all")))),
    make("tbody", {}, ...body, make("tr", {}, make("th", { scope: "row" }, say("all")),
      ...columns.kept.map(total), total({ count: cells.reduce((a, one) => a + one.count, 0) }))));
  const picture = make("div", { class: `scroll matrix${isDense ? " dense" : ""}`, role: "group", "aria-label": say("matrix_scrolls") }, table);
  const key = make("p", { class: "tools", "aria-hidden": "true" }, make("span", {}, say("fuller")), ...sureBoxes(),
    cells.some(isContradicted) ? doubtKey() : null);
  const left = [[rows, "largest_rows"], [columns, "largest_columns"]].filter(([one]) => one.all > one.kept.length)
    .map(([one, key]) => say(key, { kept: one.kept.length, all: one.all }));
  const more = left.length && rows.all * columns.all <= MOST_CELLS
    ? make("button", { type: "button", class: "more", click: again }, say("show_all")) : null;
  const note = left.length ? make("p", {}, say("shown_sums_of_all", { left: left.join(say("and")) }), " ", more) : null;
  return { nodes: [picture, key, note].filter(Boolean), draw: () => roam(picture, ".cell", true) };
}

