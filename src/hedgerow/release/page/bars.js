// Where there are more ranges than bars, each bar is the sum of some that lie side by side.
function grouped(items, size) {
  const groups = new Map();
  for (const item of items) {
    const spot = Math.floor(item.spot / size);
    const known = groups.get(spot);
    if (!known) groups.set(spot, { ...item, spot, first: item.name, of: 1, opens: false, place: null });
    else {
      known.count += item.count;
      known.name = `${known.first} … ${item.name}`;
      known.of += 1;
      known.estimate = undefined;
    }
  }
  return [...groups.values()];
}

// The ranges of the numeric axis within a view, which is split into them.
function bars(items, view) {
  const area = view[numeric], [begin, end] = codesBelow(numeric, area, area.k), possible = end - begin;
  const size = possible > MOST_BARS ? Math.ceil(possible / GROUPED_BARS) : 1;
  const placed = items.map((item) => ({ ...item, spot: item.codes[numeric] - begin }));
  const drawn = size > 1 ? grouped(placed, size) : placed, areSums = size > 1 || items.some(({ isSum }) => isSum);
  const most = Math.max(...drawn.map((item) => (areSums ? item.count : Math.max(item.high, item.count))));
  const up = (value) => `${100 * Math.min(1, value / most)}%`;
  const at = new Map(drawn.map((item) => [item.spot, item]));
  const columns = [];
  for (let spot = 0; spot < Math.ceil(possible / size); spot++) {
    const item = at.get(spot);
    if (!item) {
      columns.push(make("span", { class: "bar" }));
      continue;
    }
    const body = make("i", { class: (areSums ? "s1" : `s${reliability(item)}`) + doubt(item) });
    const reach = areSums ? null : make("s");
    body.style.height = up(item.count);
    if (reach) Object.assign(reach.style, { bottom: up(item.low), height: up(item.high - item.low) });
    columns.push(opener(item, "bar", body, reach));
  }
  const what = size > 1 ? say("bars_grouped", { bars: drawn.length, size }) : say(areSums ? "bars_summed" : "bars_each", { bars: drawn.length });
  const picture = make("div", { class: "bars", role: "group", "aria-label": say("bars", { what }) }, ...columns);
  const ends = make("div", { class: "ends", "aria-hidden": "true" },
    ...[begin, end - 1].map((code) => make("span", {}, label(numeric, area.k, code))));
  const key = size > 1 ? make("p", {}, say("bar_sums", { size })) : sureKey(items);
  return { nodes: [make("div", {}, picture, ends), key], draw: () => roam(picture, "button") };
}
