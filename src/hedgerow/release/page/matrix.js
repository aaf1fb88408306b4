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

function bars(items, possible, outer) {
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
    ...outer.map((name) => make("span", {}, name)));
  const key = size > 1 ? make("p", {}, say("bar_sums", { size })) : sureKey(items);
  return { nodes: [make("div", {}, picture, ends), key], draw: () => roam(picture, "button") };
}

// The sums by name or place of one side, the largest first.
function side(cells, which) {
  const sums = new Map();
  for (const cell of cells) {
    const { place } = cell[which];
    const known = sums.get(place) || { key: place, order: place, name: cell[`${which}Name`], brief: cell[which].brief, count: 0, isSum: true };
    known.count += cell.count;
    sums.set(place, known);
  }
  return { all: sums.size, isSum: true, items: [...sums.values()].sort((a, b) => b.count - a.count) };
}

function matrix(items, t, whole, every, again) {
  const [first, second] = [steps[t], steps[t + 1]].sort((a, b) => a[0] - b[0]);
  const [rowName, columnName] = [first, second].map(([axis, k]) => levelName(axis, k));
  const rows = side(items, "row"), columns = side(items, "column");
  const at = new Map(items.map((cell) => [`${cell.row.place},${cell.column.place}`, cell]));
  const cells = (down, across) => new Map([...at].filter(([, { row, column }]) => down.has(row.place) && across.has(column.place)));
  return grid({ rows, columns, rowName, columnName, whole, cells, every, again,
    caption: say("matrix_caption", { rows: rowName, columns: columnName }),
    top: Math.max(...items.map(({ count }) => count)), margins: say("margins_all") });
}
