// What is seen of a place: where it is, its count, a picture of the counts below it, and their rows.

const MOST_LISTED = 20000;

async function load(place) {
  await readLevels(splitInto(place));
  const split = splitAxes(place);
  for (const some of [[], ...split.map((a) => [a]), split]) {
    const levels = cuboidOf(place, some);
    if (isCarried(levels)) await readCuboid(levels);
  }
}

// The descendants of an area at a level: from one code on, up to before another.
function below(a, { c, code }, k) {
  let [first, end] = [code, code + 1];
  for (let l = c + 1; l <= k; l++) [first, end] = [first, end].map((one) => level(a, l).start[one]);
  return [first, end];
}

// The cells of a cuboid within the areas of a place, as indices, and the codes of each.
function cut(place, levels) {
  const cuboid = held.get(`cuboid-${levels.join("-")}`), { flat, sizes, codesOf } = cuboid;
  const ranges = place.map((area, a) => below(a, area, levels[a]));
  const inner = sizes.slice(1).reduce((x, y) => x * y, 1);
  const [from, to] = ranges[0].map((code) => code * inner);
  const found = [];
  for (let i = flat[0] >= from ? 0 : owner(flat, from); i < flat.length && flat[i] < to; i++) {
    const codes = codesOf(i);
    if (codes.every((code, a) => ranges[a][0] <= code && code < ranges[a][1])) found.push(i);
  }
  return { cuboid, levels, found };
}

function itemOf({ cuboid, levels }, i, place, whole) {
  const codes = cuboid.codesOf(i), own = splitAxes(place).filter((a) => levels[a] > place[a].c);
  const to = opened(levels, codes, place, own), value = valueAt(cuboid, i);
  return {
    areas: own.map((a) => [a, levels[a], codes[a]]), codes, ...value, part: value.count / whole,
    unbiased: tellsUnbiased ? cuboid.unbiased[i] : undefined,
    name: own.map((a) => label(a, levels[a], codes[a])).join(" → ") || nameOf(named(place)),
    brief: own.map((a) => ending(a, levels[a], codes[a])).join(" → "),
    to, opens: Boolean(to), at: areasOf(levels.map((c, a) => ({ c, code: codes[a] }))),
  };
}

const itemsOf = (part, place, whole) => part.found.map((i) => itemOf(part, i, place, whole));

// The largest cells alone, where there are very many.
function largest(part) {
  if (part.found.length <= MOST_LISTED) return part;
  const counts = Float64Array.from(part.found, (i) => part.cuboid.count[i]).sort();
  const least = counts[counts.length - MOST_LISTED];
  return { ...part, found: part.found.filter((i) => part.cuboid.count[i] >= least).slice(0, MOST_LISTED) };
}

// The sums of a part's cells along one axis, where these have no counts of their own.
function sumsOf(part, place, a, whole) {
  const sums = new Map();
  for (const i of part.found) {
    const code = part.cuboid.codesOf(i)[a];
    sums.set(code, (sums.get(code) || 0) + part.cuboid.count[i]);
  }
  return [...sums].map(([code, count]) => ({
    codes: place.map((one, b) => (b === a ? code : one.code)), count, part: count / whole,
    name: label(a, place[a].k, code), brief: ending(a, place[a].k, code), isSum: true,
  }));
}

// Counts of two axes, and beside them those of each axis over everything of the other.
function crossed(place, part, [down, across], whole, every) {
  const margin = (a) => {
    const own = ownMargin(place, a);
    const items = own ? itemsOf(cut(place, own), place, whole.count) : sumsOf(part, place, a, whole.count);
    for (const item of items) item.key = item.order = item.codes[a];
    return { all: items.length, isSum: !own, items: items.sort((x, y) => y.count - x.count) };
  };
  const rows = margin(down), columns = margin(across);
  const cells = (rowKeys, columnKeys) => {
    const at = new Map();
    for (const i of part.found) {
      const codes = part.cuboid.codesOf(i), [r, c] = [codes[down], codes[across]];
      if (rowKeys.has(r) && columnKeys.has(c)) at.set(`${r},${c}`, itemOf(part, i, place, whole.count));
    }
    return at;
  };
  const [rowName, columnName] = [down, across].map((a) => levelName(a, place[a].k));
  const where = place.some(({ c }) => c) ? nameOf(named(place)) : "";
  const summed = [[rows, "rows"], [columns, "columns"]].filter(([one]) => one.isSum).map(([, key]) => say(key));
  return grid({ rows, columns, rowName, columnName, whole, cells, every, again: () => draw(place, true),
    caption: say(where ? "matrix_within" : "matrix_caption", { rows: rowName, columns: columnName, where }),
    top: part.found.reduce((most, i) => Math.max(most, part.cuboid.count[i]), 0),
    margins: marginWords(summed.join(say("and"))) });
}

function crumbs(place) {
  if (place.every(({ c }) => c === 0)) return [];
  return trails(place).map(([told, steps]) => make("nav", { "aria-label": told }, make("ol", { class: "crumbs" },
    ...steps.map(([words, to], i) => make("li", {}, i === steps.length - 1 ? make("span", { "aria-current": "page" }, isolated(words))
      : to ? make("button", { type: "button", click: () => go(to, "back") }, isolated(words)) : make("span", {}, isolated(words)))))));
}

function here(place, whole) {
  const exact = whole.low === whole.high && whole.low === whole.count;
  const told = { unit, interval: interval(whole), unbiased: whole.unbiased };
  return make("div", { class: "here", role: "status" },
    make("h3", { tabindex: -1 }, isolated(nameOf(named(place)))),
    make("strong", {}, number.format(whole.count)),
    make("span", {}, say(exact ? "here_exact" : tellsUnbiased ? "here_unbiased" : "here_sure", told)),
    isContradicted(whole) ? make("span", { class: "doubt" }, `≠ ${contradiction(whole)}`) : null);
}

// How many counts there can be below a place; null where the page does not know.
function possible(place) {
  return facts.ruled ? null : place.reduce((product, { c, code, k }, a) => {
    const own = k === c ? 1 : c === 0 ? facts.sizes[a][k] : k === c + 1 ? level(a, k).possible[code] : null;
    return own === null || product === null ? null : product * own;
  }, 1);
}

function draw(place, every = false) {
  drawAgain = () => draw(place, every);
  const levels = splitInto(place), split = splitAxes(place), name = splitName(place, levels);
  const own = cut(place, cuboidOf(place, [])), whole = itemOf(own, own.found[0], place, 1);
  const parts = [...crumbs(place), here(place, whole), ...tools(place)];
  let picture = null;
  if (!split.length) {
    parts.push(make("p", {}, unsplitWords(place)));
  } else if (!isCarried(levels)) {
    parts.push(make("p", {}, say("in_file", { name, file: fileOf(levels) })));
  } else {
    const part = cut(place, levels), few = axes.length > 1 ? largest(part) : part;
    const items = itemsOf(few, place, whole.count), cells = possible(place);
    const listed = part.found.length;
    const note = cells === null ? say(facts.ruled ? "listed_ruled" : "listed", { listed })
      : say(cells > listed ? "listed_some" : "listed_all", { listed, cells });
    const line = make("p", { class: "readout", "aria-hidden": "true" }, note);
    if (split.length === 1) picture = numeric ? bars(items, place[0]) : map(items);
    if (split.length === 2) picture = crossed(place, part, split, whole, every);
    if (split.length === 2) parts.push(...picture.nodes);
    else if (picture) parts.push(picture.nodes[0], line, ...picture.nodes.slice(1));
    else parts.push(make("p", {}, say(released ? "too_many_axes" : "two_axes")), line);
    const most = few.found.length < part.found.length ? ` ${say("below_largest", { number: MOST_LISTED })}` : "";
    parts.push(listing(items, say("caption", { name: nameOf(named(place)), by: name, note: `${note}${most}` }), name));
  }
  box.replaceChildren(...parts);
  if (picture) picture.draw();
  redraw = picture ? picture.draw : null;
}

// Whether the area or cell of a button is one that a place lies in.
const leadsTo = (place) => ({ dataset }) =>
  areasOf(within(place, dataset.at.split("-").map((area) => Number(area.split(".")[0])))) === dataset.at;

function refocus(before) {
  const first = box.querySelector(".tile[tabindex='0'], .cell[tabindex='0'], .bar[tabindex='0']");
  const heading = box.querySelector("h3");
  const wanted = focus && focus.startsWith("axis-") ? box.querySelector(`[data-axis="${focus.slice(5)}"]`)
    : { first: first || heading, here: heading, back: [...box.querySelectorAll("[data-at]")].find(leadsTo(before)) || heading }[focus];
  focus = null;
  if (wanted) wanted.focus({ preventScroll: wanted !== heading });
}

function go(place, then) {
  focus = then;
  const hash = `#at-${written(place)}`;
  if (location.hash === hash) show(); else location.hash = hash;
}

async function show() {
  const hash = location.hash;
  if (hash.length > 1 && !hash.startsWith("#at-") && box.dataset.ready) return; // another place of the page
  let place = placeOf(hash) || START;
  await load(place);
  if (location.hash !== hash) return; // someone went on while this was read
  if (!cut(place, cuboidOf(place, [])).found.length) {
    place = START;
    await load(place);
  }
  const before = shown;
  shown = place;
  asked = "";
  rows = ROWS;
  draw(place);
  box.dataset.ready = "true";
  refocus(before);
}

function goUp(event) {
  if (event.key === "Escape" && shown.some(({ c }) => c)) go(up(shown), "back");
}

if (START.length && typeof DecompressionStream !== "undefined") {
  shown = START;
  box.addEventListener("keydown", goUp);
  addEventListener("hashchange", show);
  if (isSearched) {
    box.before(finder((a, k, code) => {
      const to = foundAt(a, k, code);
      if (to) go(to, "here");
    }));
  }
  addEventListener("resize", () => {
    if (redraw && innerWidth !== width) {
      width = innerWidth;
      redraw();
    }
  });
  show();
}
