// What colours a map: counts, their shares of what each area has in all, how many a square kilometre, or
// the medians of a column.

// What the areas of a view can be coloured by: what it is called, its figures, and their intervals.
function kindsOf(view, a, items) {
  const shapes = sheets.get(a), k = view[a].k, nodes = nodesOfCodes(shapes, a, k);
  const own = splitInto(view), whole = alone(view, a), isPart = isCarried(whole) && isCoarser(whole, own);
  const density = ({ codes, count, low: least, high: most }) => {
    const size = sizeOf(shapes, k, nodes[codes[a]]);
    if (!size) return undefined;
    return { value: count / size, low: least / size * (1 - ROUGHLY), high: most / size * (1 + ROUGHLY) };
  };
  const scaled = (item) => (medianOf(item) && medianOf(item).low >= 0 && medianOf(item).value > 0 ? medianOf(item) : undefined); // of what can be below 0 no part is told
  return [
    { key: "count", short: say("count"), name: unit, write: compact.format },
    { key: "share", short: say("map_share"), name: say("share_of_area"), write: percent, most: 1, isWhole: false, at: facts.sure[sure], untold: RELIABILITY[NOISE], of: (item) => isPart && shareIn(countOf(within(item.place, whole)), item) },
    { key: "per_km2", short: say("map_density"), name: say("per_km2", { unit }), write: short.format, isWhole: false, at: facts.sure[sure], untold: "–", of: density },
    { key: "median", short: say("map_median"), name: values && medianName(), write: values && values.format, isWhole: false, at: facts.sure[sure], untold: "–", of: scaled },
  ].filter(({ of }) => !of || items.some(of));
}

const ROUGHLY = 1 / 1000; // by which sizes of four digits may be off at most, and a little more

// Square kilometres of an area, of a coarser level the sum of its finest; 0 where one is not known.
function sizeOf(shapes, k, node) {
  const sizes = node === undefined ? [] : shapes.km2.slice(...nodesBelow(shapes, k, node, shapes.level));
  return sizes.every(Boolean) ? sizes.reduce((sum, one) => sum + one, 0) : 0;
}

const valueOf = (item) => shownOf(item).count;
const sureOf = (item) => (item.isUnlisted ? NOISE : reliability(shownOf(item)));

function kindChoice(kinds, { key: now }) {
  const buttons = kinds.map(({ key, short: words }) => make("button", { type: "button", "aria-pressed": String(key === now), "data-axis": `map-${key}`, click: () => {
    coloured = key;
    go(shown, `axis-map-${key}`);
  } }, words));
  return kinds.length < 2 ? null : make("div", { class: "tools", role: "group", "aria-label": say("coloured_by") }, say("coloured_by"), make("div", { class: "choice" }, ...buttons));
}
