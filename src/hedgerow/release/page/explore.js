// One state, an address: the answer, a picture and rows beside it follow it.

const MOST_LISTED = 20000;

// The descendants of an area at a level: from one code on, up to before another.
function codesBelow(a, { c, code }, k) {
  let [first, end] = [code, code + 1];
  for (let l = c + 1; l <= k; l++) [first, end] = [first, end].map((one) => level(a, l).start[one]);
  return [first, end];
}

// The cells of a cuboid within the areas of a place, as indices.
function cut(place, levels) {
  const cuboid = held.get(`cuboid-${keyOf(levels)}`), { flat, sizes } = cuboid, found = [];
  const limits = [];
  for (let a = sizes.length - 1, stride = 1; a >= 0; stride *= sizes[a], a--) {
    const [first, end] = codesBelow(a, place[a], levels[a]);
    if (a === 0) limits.from = first * stride, limits.to = end * stride;
    else if (first > 0 || end < sizes[a]) limits.push({ first, end, stride, size: sizes[a] });
  }
  for (let i = flat[0] >= limits.from ? 0 : owner(flat, limits.from); i < flat.length && flat[i] < limits.to; i++) {
    if (flat[i] >= limits.from && limits.every(({ first, end, stride, size }) => {
      const code = Math.floor(flat[i] / stride) % size;
      return first <= code && code < end;
    })) found.push(i);
  }
  return { cuboid, levels, found };
}

// What is known of a place: its count, or the sum of those below it where it has none of its own.
function countOf(place) {
  const own = levelsOf(place);
  if (!isCarried(own)) {
    const { cuboid, found } = cut(place, below(own)[0]);
    return { count: found.reduce((sum, i) => sum + cuboid.count[i], 0), isSum: true };
  }
  const { cuboid, found: [i] } = cut(place, own);
  return i === undefined ? { count: 0, low: 0, high: 0, isUnlisted: true } : valueAt(cuboid, i);
}

function itemAt(place) {
  const fixed = [...axes.keys()].filter((a) => place[a].c);
  return { ...countOf(place), place, areas: fixed.map((a) => [a, place[a].c, place[a].code]), name: nameOf(place) };
}

// The counts of part of a cuboid, as they stand in a view; each says what it opens.
function itemsOf({ cuboid, levels, found }, view) {
  const own = splitAxes(view).filter((a) => levels[a] > view[a].c);
  const opens = found.length > 0 && after(view, levels.map((c) => ({ c, code: 0 }))) !== view;
  const whole = countOf(view), isPart = own.length > 0 && !whole.isSum && !whole.isUnlisted;
  return found.map((i) => {
    const codes = cuboid.codesOf(i), place = levels.map((c, a) => ({ c, code: codes[a] })), value = valueAt(cuboid, i);
    return {
      ...value, share: isPart ? shareIn(whole, value) : undefined, place, codes, opens, at: areasOf(place), areas: own.map((a) => [a, levels[a], codes[a]]),
      name: own.map((a) => label(a, levels[a], codes[a])).join(BETWEEN) || nameOf(place),
      brief: own.map((a) => ending(a, levels[a], codes[a])).join(BETWEEN),
    };
  });
}

// The largest cells alone, where there are very many.
function largest(part) {
  if (part.found.length <= MOST_LISTED) return part;
  const counts = Float64Array.from(part.found, (i) => part.cuboid.count[i]).sort();
  const least = counts[counts.length - MOST_LISTED];
  return { ...part, found: part.found.filter((i) => part.cuboid.count[i] >= least).slice(0, MOST_LISTED) };
}

// The sums of a part's cells along one axis, where these have no counts of their own.
function sumsOf(part, view, a) {
  const sums = new Map();
  for (const i of part.found) {
    const code = part.cuboid.codesOf(i)[a];
    sums.set(code, (sums.get(code) || 0) + part.cuboid.count[i]);
  }
  return [...sums].map(([code, count]) => ({
    codes: view.map((one, b) => (b === a ? code : one.code)), count,
    name: label(a, view[a].k, code), brief: ending(a, view[a].k, code), isSum: true,
  }));
}

// Counts of two axes, and beside them those of each axis over everything of the other.
function crossed(view, part, [down, across], every) {
  const margin = (a) => {
    const own = cuboidOf(view, [a]), isOwn = isCarried(own);
    const items = isOwn ? itemsOf(cut(view, own), view) : sumsOf(part, view, a);
    for (const item of items) item.key = item.order = item.codes[a];
    return { all: items.length, isSum: !isOwn, items: items.sort((x, y) => y.count - x.count) };
  };
  const rows = margin(down), columns = margin(across);
  const cells = (rowKeys, columnKeys) => {
    const seen = itemsOf(part, view).filter(({ codes }) => rowKeys.has(codes[down]) && columnKeys.has(codes[across]));
    return new Map(seen.map((item) => [`${item.codes[down]},${item.codes[across]}`, item]));
  };
  const [rowName, columnName] = [down, across].map((a) => levelName(a, view[a].k));
  const where = whereOf(view);
  const summed = [[rows, "rows"], [columns, "columns"]].filter(([one]) => one.isSum).map(([, key]) => say(key));
  return grid({ rows, columns, rowName, columnName, whole: countOf(view), cells, every, again: () => draw(true),
    caption: say(where ? "matrix_within" : "matrix_caption", { rows: rowName, columns: columnName, where }),
    top: part.found.reduce((most, i) => Math.max(most, part.cuboid.count[i]), 0),
    margins: summed.length ? say("margins_sums", { which: summed.join(say("and")) }) : say("margins_own") });
}

// ---- what to show ----

// Of two axes, which end stays: one of them, or neither in a matrix.
function tabs({ place, view }) {
  if (axes.length !== 2) return null;
  const sides = [0, 1].map((a) => [sideOf(place, a), `${axes[a].name}: ${place[a].c ? areaName(a, place[a]) : say("all")}`]);
  const found = [...sides, [crossing(place), say("matrix")]].filter(([one]) => one);
  const now = String(splitAxes(view));
  return found.length < 2 ? null : make("div", { class: "tools", role: "group", "aria-label": say("what_to_show") }, make("div", { class: "choice" },
    ...found.map(([one, words], i) => make("button", { type: "button", "aria-pressed": String(String(splitAxes(one)) === now), "data-axis": `tab${i}`,
      click: () => go({ place, view: one }, `axis-tab${i}`) }, isolated(words)))));
}

// The levels that a view can be split into; of two axes along those that it is split along.
function levelChoice({ place, view }) {
  const own = levelsOf(view), now = keyOf(splitInto(view)), split = String(splitAxes(view));
  const options = facts.released.filter((one) => isCoarser(own, one) && (axes.length !== 2 || String(splitAxes(among(view, one))) === split));
  if (options.length < 2) return null;
  const named = (one) => {
    const split_ = [...axes.keys()].filter((a) => one[a] > own[a]);
    return split_.length === 1 && axes.length === 2 ? axes[split_[0]].levels[one[split_[0]] - 1] : wordsOf(own, one);
  };
  const words = (one) => (isCarried(one) ? named(one) : say("in_its_file", { name: named(one) }));
  const to = (one, focused) => go({ place, view: among(view, one) }, focused);
  if (options.length <= MOST_BUTTONS && axes.length < 3) {
    return make("div", { class: "choice", role: "group", "aria-label": say("levels_to_show") }, ...options.map((one) => make("button",
      { type: "button", "aria-pressed": String(keyOf(one) === now), "data-axis": keyOf(one), click: () => to(one, `axis-${keyOf(one)}`) }, isolated(words(one)))));
  }
  return make("label", {}, say("counts_by"), " ", make("select", { "data-axis": "cuboid", change: (event) => to(event.target.value.split("-").map(Number), "axis-cuboid") },
    ...(options.some((one) => keyOf(one) === now) ? [] : [make("option", { value: now, selected: true }, say("not_split"))]),
    ...options.map((one) => make("option", { value: keyOf(one), selected: keyOf(one) === now }, words(one)))));
}

// What the labels list of an axis that is made of several columns.
const legends = (view) => axes.map(({ name, told }, a) => told && view[a].k && told[view[a].k - 1]
  ? make("p", { class: "told" }, say("labels_list", { axis: apart(name), columns: apart(told[view[a].k - 1]) })) : null).filter(Boolean);

// How many counts there can be below a place; null where the page does not know.
function possible(view) {
  return facts.ruled ? null : view.reduce((product, { c, code, k }, a) => {
    const own = k === c ? 1 : c === 0 ? facts.sizes[a][k] : k === c + 1 ? level(a, k).possible[code] : null;
    return own === null || product === null ? null : product * own;
  }, 1);
}

function draw(every = false) {
  const { view } = shown, levels = splitInto(view), split = splitAxes(view), name = wordsOf(levelsOf(view), levels);
  answer.replaceChildren(...answerOf(shown.place));
  const where = whereOf(view);
  heading.replaceChildren(split.length ? say(where ? "view_within" : "view", { unit: capital(unit), by: name, where }) : say("counts"));
  const parts = [make("div", { class: "tools" }, tabs(shown), levelChoice(shown), surenessChoice()), ...legends(view)];
  let picture = null;
  if (!isCarried(levels)) {
    parts.push(make("p", {}, say("in_file", { name, file: fileOf(levels) })));
  } else {
    const part = cut(view, levels), few = axes.length > 1 ? largest(part) : part, items = itemsOf(few, view);
    const cells = possible(view), listed = part.found.length;
    const note = cells === null ? say(facts.ruled ? "listed_ruled" : "listed", { listed })
      : say(cells > listed ? "listed_some" : "listed_all", { listed, cells });
    const most = few.found.length < listed ? ` ${say("below_largest", { number: MOST_LISTED })}` : "";
    const line = make("p", { class: "readout", "aria-hidden": "true" }, say("hint"));
    if (split.length === 1 && items.length) picture = split[0] === numeric ? bars(items, view) : drawers.map((drawn) => drawn(view, split[0], items)).find(Boolean) || map(items);
    if (split.length === 2 && items.length) picture = crossed(view, part, split, every);
    const rows_ = listing(items, say("caption", { name: where || say("everything"), by: name, note: `${note}${most}` }), name, `${note}${most}`);
    const isBeside = split.length === 1 && picture;
    if (isBeside) parts.push(make("div", { class: "side" }, make("figure", {}, picture.nodes[0], line, ...picture.nodes.slice(1)), rows_));
    else parts.push(...(picture ? picture.nodes : []), rows_);
  }
  box.replaceChildren(...parts);
  if (picture) picture.draw();
  redraw = picture ? picture.draw : null;
  mark();
}

// The one selection, wherever it stands.
function mark() {
  for (const one of box.querySelectorAll(`[data-at]`)) {
    if (one.dataset.at === areasOf(shown.place)) one.setAttribute("aria-current", "true"); else one.removeAttribute("aria-current");
  }
}

// Whether the area or cell of a button is one that a place lies in.
const leadsTo = (place) => ({ dataset }) =>
  areasOf(within(place, dataset.at.split("-").map((area) => Number(area.split(".")[0])))) === dataset.at;

function refocus(before) {
  const first = box.querySelector(".tile[tabindex='0'], .cell[tabindex='0'], .bar[tabindex='0'], .area[tabindex='0']");
  const pictured = [...box.querySelectorAll(".tile, .cell, .bar, .area")], title = answer.querySelector("h2");
  const wanted = focus && focus.startsWith("axis-") ? box.querySelector(`[data-axis="${focus.slice(5)}"]`)
    : { first: pictured.find((one) => one.dataset.at === areasOf(shown.place)) || first || title, here: title, back: before && pictured.find((one) => one.dataset.at && leadsTo(before)(one)) || title }[focus];
  focus = null;
  if (wanted) wanted.focus({ preventScroll: wanted !== title });
}

function go(to, then) {
  focus = then;
  const hash = written(to);
  if (location.hash === hash) show(); else location.hash = hash;
}

// A count that was chosen in a picture or among the rows.
const choose = (item, then) => go({ place: item.place, view: after(shown.view, item.place) }, then);

// All that is read before a state can be drawn.
async function load({ place, view }) {
  const split = splitAxes(view), near = opened(place);
  const some = [levelsOf(place), levelsOf(view), splitInto(view), ...split.map((a) => cuboidOf(view, [a])), ...[...above(place), ...wholes(place)].map(levelsOf), ...(near ? [splitInto(near)] : []), ...(values && rangesOf(place) ? [rangesOf(place)] : [])];
  for (const levels of [...some, ...split.map((a) => alone(view, a)), ...some.filter((one) => !isCarried(one)).map((one) => below(one)[0] || everything.map(() => 0))]) {
    if (isCarried(levels)) await readCuboid(levels);
  }
}

async function show() {
  const { hash } = location;
  if (hash.length > 1 && !hash.startsWith("#place=") && box.dataset.ready) return; // another part of the page
  const next = await asked(hash) || { place: everything, view: usual(everything) };
  await readLevels(splitInto(next.view));
  await load(next);
  if (location.hash !== hash) return; // someone went on while this was read
  const before = shown && shown.place;
  [shown, sought, rows, coloured] = [next, "", ROWS, next.map || "count"];
  if (readers.length) {
    answer.replaceChildren(...answerOf(shown.place)); // is seen before any map is read
    await new Promise((done) => { setTimeout(done, 0); });
  }
  while (readers.length) await readers.shift()();
  draw();
  box.dataset.ready = "true";
  refocus(before);
}

function goUp(event) {
  const [up] = above(shown.place);
  if (event.key === "Escape" && up) go({ place: up, view: usual(up) }, "back");
}

async function begin() {
  if (!isCarried(everything.map(() => 0))) return;
  const total = await readCuboid(everything.map(() => 0));
  if (!total.count.length) return;
  for (const one of [box, answer]) one.addEventListener("keydown", goUp);
  addEventListener("hashchange", show);
  document.getElementById("search").append(finder());
  addEventListener("resize", () => {
    if (redraw && innerWidth !== width) {
      width = innerWidth;
      redraw();
    }
  });
  await show();
}

if (typeof DecompressionStream !== "undefined") begin();
