// What is seen of several cuboids: a picture of the counts of a place, and the rows below it.

const MOST_LISTED = 20000;

async function load(place) {
  await readLevels(place.map(({ k }) => k));
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

// What a cell opens: its areas, the axes whose areas they are now split one level further.
function opened(levels, codes, place, own) {
  const deeper = (some) => place.map((one, a) => own.includes(a)
    ? { c: levels[a], code: codes[a], k: some.includes(a) ? Math.min(levels[a] + 1, finest[a]) : levels[a] } : one);
  if (!own.length) return undefined;
  const next = [own, ...own.map((a) => [a])].map(deeper)
    .find((to) => splitAxes(to).length && isCarried(to.map(({ k }) => k)));
  if (next || !released) return next;
  const to = nearest(deeper([]));
  return splitAxes(to).length ? to : undefined;
}

function itemOf({ cuboid, levels }, i, place, whole) {
  const codes = cuboid.codesOf(i), own = splitAxes(place).filter((a) => levels[a] > place[a].c);
  const target = opened(levels, codes, place, own);
  const value = valueAt(cuboid, i);
  return {
    areas: own.map((a) => [a, levels[a], codes[a]]), codes, ...value, unbiased: cuboid.unbiased[i], part: value.count / whole,
    name: own.map((a) => label(a, levels[a], codes[a])).join(" → ") || nameOf(named(place)),
    brief: own.map((a) => ending(a, levels[a], codes[a])).join(" → "),
    t: target ? written(target) : "", opens: Boolean(target),
    i: areasOf(levels.map((c, a) => ({ c, code: codes[a] }))),
  };
}

const named = (place) => place.map(({ c, code }) => ({ level: c, code }));
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
function crossed(place, part, [down, across], whole, every, again) {
  const margin = (a) => {
    const own = cuboidOf(place, [a]), isSum = !isCarried(own);
    const items = isSum ? sumsOf(part, place, a, whole.count) : itemsOf(cut(place, own), place, whole.count);
    for (const item of items) item.key = item.order = item.codes[a];
    return { all: items.length, isSum, items: items.sort((x, y) => y.count - x.count) };
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
  return grid({ rows, columns, rowName, columnName, whole, cells, every, again,
    caption: say(where ? "matrix_within" : "matrix_caption", { rows: rowName, columns: columnName, where }),
    top: part.found.reduce((most, i) => Math.max(most, part.cuboid.count[i]), 0),
    margins: summed.length ? say("margins_sums", { which: summed.join(say("and")) }) : say("margins_own") });
}

function crumbs(place) {
  if (place.every(({ c }) => c === 0)) return [];
  return axes.map((axis, a) => {
    const entries = [];
    for (let { c, code } = place[a]; ; code = owner(level(a, c).start, code), c--) {
      const words = isolated(c ? label(a, c, code) : say("axis_everything", { axis: axis.name }));
      const to = reachable(place.map((one, b) => (b === a ? { c, code, k: Math.min(c + 1, finest[a]) } : one)));
      entries.unshift(make("li", {}, c === place[a].c ? make("span", { "aria-current": "page" }, words)
        : to ? make("button", { type: "button", click: () => go(written(to), "", 2, "back") }, words)
          : make("span", {}, words)));
      if (c === 0) break;
    }
    return make("nav", { "aria-label": say("where_on", { axis: axis.name }) }, make("ol", { class: "crumbs" }, ...entries));
  });
}

// Where somebody named the cuboids, one of those that refine the areas shown.
function choice(place) {
  const own = cuboidOf(place, []), levels = place.map(({ k }) => k);
  const options = facts.released.filter((one) => isCoarser(own, one)).map((one) => make("option",
    { value: one.join("-"), selected: one.join("-") === levels.join("-") }, isCarried(one) ? wordsOf(own, one) : say("in_its_file", { name: wordsOf(own, one) })));
  const none = make("option", { value: own.join("-"), selected: !splitAxes(place).length }, depthOf(own) ? say("not_split") : say("total"));
  const pick = make("select", { "data-axis": "cuboid", change: (event) => go(written(among(place, event.target.value.split("-").map(Number))), "", 2, "axis-cuboid") }, none, ...options);
  return make("div", { class: "tools", role: "group", "aria-label": say("levels_to_show") }, make("label", {}, say("counts_by"), " ", pick));
}

function choices(place) {
  if (released) return choice(place);
  const split = splitAxes(place), roles = split.length === 2 ? [say("rows_label"), say("columns_label")] : [];
  const labels = axes.map((axis, a) => {
    const { c, k } = place[a], options = [];
    for (let l = c; l <= finest[a]; l++) {
      options.push(make("option", { value: l, selected: l === k }, l > c ? axis.levels[l - 1] : c ? say("not_split") : say("total")));
    }
    const to = (l) => place.map((one, b) => (b === a ? { ...one, k: l } : one));
    const choice = make("select", { "data-axis": a, change: (event) => go(written(to(Number(event.target.value))), "", 2, `axis-${a}`) }, ...options);
    return make("label", {}, roles[split.indexOf(a)] || "", isolated(axis.name), ` ${say("by")} `, choice);
  });
  return make("div", { class: "tools", role: "group", "aria-label": say("levels_to_show") }, ...labels);
}

function here(place, whole) {
  const exact = whole.low === whole.high && whole.low === whole.count;
  return make("div", { class: "here", role: "status" },
    make("h3", { tabindex: -1 }, isolated(nameOf(named(place)))),
    make("strong", {}, number.format(whole.count)),
    make("span", {}, exact ? say("here_exact", { unit })
      : say("here_unbiased", { unit, interval: interval(whole), unbiased: whole.unbiased })),
    isContradicted(whole) ? make("span", { class: "doubt" }, `≠ ${contradiction(whole)}`) : null);
}

// What the labels list of an axis that is made of several columns.
function legends(place) {
  return axes.map(({ name, told }, a) => told && place[a].k && told[place[a].k - 1]
    ? make("p", { class: "told" }, say("labels_list", { axis: apart(name), columns: apart(told[place[a].k - 1]) })) : null).filter(Boolean);
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
  const levels = place.map(({ k }) => k), split = splitAxes(place);
  const [root] = cut(place, cuboidOf(place, [])).found;
  const whole = itemOf(cut(place, cuboidOf(place, [])), root, place, 1);
  const parts = [...crumbs(place), here(place, whole), choices(place), surenessChoice(), ...legends(place)];
  const name = wordsOf(cuboidOf(place, []), levels);
  let picture = null;
  if (!split.length) {
    const isLast = released && !facts.released.some((one) => isCoarser(levels, one));
    parts.push(make("p", {}, say(isLast ? "one_count_last" : "one_count")));
  } else if (!isCarried(levels)) {
    parts.push(make("p", {}, say("in_file", { name, file: fileOf(levels) })));
  } else {
    const part = cut(place, levels), few = largest(part);
    const items = itemsOf(few, place, whole.count), cells = possible(place);
    const listed = part.found.length;
    const note = cells === null ? say(facts.ruled ? "listed_ruled" : "listed", { listed })
      : say(cells > listed ? "listed_some" : "listed_all", { listed, cells });
    const line = make("p", { class: "readout", "aria-hidden": "true" }, note);
    if (split.length === 1) picture = map(items);
    if (split.length === 2) picture = crossed(place, part, split, whole, every, () => draw(place, true));
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

function refocus(before) {
  const first = box.querySelector(".tile[tabindex='0'], .cell[tabindex='0']");
  const heading = box.querySelector("h3");
  const back = [...box.querySelectorAll("[data-i]")].find((one) => one.dataset.i === before);
  const wanted = focus && focus.startsWith("axis-") ? box.querySelector(`[data-axis="${focus.slice(5)}"]`)
    : { first: first || heading, here: heading, back: back || heading }[focus];
  focus = null;
  if (wanted) wanted.focus({ preventScroll: wanted !== heading });
}

function go(target, from, mode, then) {
  focus = then;
  const hash = `#cube-${target}`;
  if (location.hash === hash) show(); else location.hash = hash;
}

async function show() {
  const hash = location.hash;
  if (hash.length > 1 && !hash.startsWith("#cube-") && box.dataset.ready) return; // another place of the page
  let place = placeOf(hash) || START;
  await load(place);
  if (location.hash !== hash) return; // someone went on while this was read
  if (!cut(place, cuboidOf(place, [])).found.length) {
    place = START;
    await load(place);
  }
  const before = areasOf(shown);
  shown = place;
  asked = "";
  rows = ROWS;
  draw(place);
  box.dataset.ready = "true";
  refocus(before);
}

function goUp(event) {
  if (event.key !== "Escape" || shown.every(({ c }) => c === 0)) return;
  const own = cuboidOf(shown, []);
  const up = shown.map(({ c, code, k }, a) => (c ? { c: c - 1, code: owner(level(a, c).start, code), k: c } : { c, code, k }));
  const [above] = facts.cuboids.filter((levels) => isCoarser(levels, own)).sort((x, y) => depthOf(y) - depthOf(x));
  go(written(isThere(up) ? up : among(within(shown, above), own)), "", 2, "back");
}

if (START.length && typeof DecompressionStream !== "undefined") {
  shown = START;
  box.addEventListener("keydown", goUp);
  addEventListener("hashchange", show);
  box.before(finder((a, k, code) => {
    const area = (b) => (a === b ? { c: k, code, k: Math.min(k + 1, finest[a]) } : { c: 0, code: 0, k: Math.min(1, finest[b]) });
    const to = reachable(axes.map((_axis, b) => area(b)));
    if (to) go(written(to), "", 2, "here");
  }));
  addEventListener("resize", () => {
    if (redraw && innerWidth !== width) {
      width = innerWidth;
      redraw();
    }
  });
  show();
}
