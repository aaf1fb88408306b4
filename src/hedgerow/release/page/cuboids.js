// Any cuboids: a reader chooses what a place is split into.
//
// Where somebody named the cuboids, these alone can be looked at, and within the areas of one only
// those that refine it.

const START = facts.start.map((k) => ({ c: 0, code: 0, k }));
const tellsUnbiased = true;
const isSearched = true;

// The same areas, split by the coarsest carried cuboid that refines theirs; if none does, not split.
function nearest(place) {
  const own = cuboidOf(place, []);
  const rank = (levels) => 1000 * (levels.filter((k, a) => k > own[a]).length > 2) + depthOf(levels);
  const [first] = facts.cuboids.filter((levels) => isCoarser(own, levels)).sort((x, y) => rank(x) - rank(y));
  return among(place, first || own);
}

// The same areas, split as they are asked to be if that was released; null where they were not.
const reachable = (place) => isThere(place) ? place : isCarried(cuboidOf(place, [])) ? nearest(place) : null;

// What a cell opens: its areas, the axes whose areas they are now split one level further.
function opened(levels, codes, place, own) {
  const deeper = (some) => place.map((one, a) => own.includes(a)
    ? { c: levels[a], code: codes[a], k: some.includes(a) ? Math.min(levels[a] + 1, finest[a]) : levels[a] } : one);
  if (!own.length) return undefined;
  const next = [own, ...own.map((a) => [a])].map(deeper)
    .find((to) => splitAxes(to).length && isCarried(splitInto(to)));
  if (next || !released) return next;
  const to = nearest(deeper([]));
  return splitAxes(to).length ? to : undefined;
}

// An area of one axis, over everything of the others.
const foundAt = (a, k, code) => reachable(axes.map((_axis, b) => a === b
  ? { c: k, code, k: Math.min(k + 1, finest[a]) } : { c: 0, code: 0, k: Math.min(1, finest[b]) }));

function up(place) {
  const own = cuboidOf(place, []);
  const one = place.map(({ c, code, k }, a) => (c ? { c: c - 1, code: owner(level(a, c).start, code), k: c } : { c, code, k }));
  if (isThere(one)) return one;
  const [above] = facts.cuboids.filter((levels) => isCoarser(levels, own)).sort((x, y) => depthOf(y) - depthOf(x));
  return among(within(place, above), own);
}

function trails(place) {
  return axes.map((axis, a) => [say("where_on", { axis: axis.name }), [...Array(place[a].c + 1).keys()].map((c) => {
    const { code } = within(place, place.map((one, b) => (b === a ? c : one.c)))[a];
    const words = c ? label(a, c, code) : say("axis_everything", { axis: axis.name });
    return [words, reachable(place.map((one, b) => (b === a ? { c, code, k: Math.min(c + 1, finest[a]) } : one)))];
  })]);
}

// Where somebody named the cuboids, one of those that refine the areas shown.
function choice(place) {
  const own = cuboidOf(place, []), levels = splitInto(place);
  const options = facts.released.filter((one) => isCoarser(own, one)).map((one) => make("option",
    { value: one.join("-"), selected: one.join("-") === levels.join("-") }, isCarried(one) ? wordsOf(own, one) : say("in_its_file", { name: wordsOf(own, one) })));
  const none = make("option", { value: own.join("-"), selected: !splitAxes(place).length }, depthOf(own) ? say("not_split") : say("total"));
  const pick = make("select", { "data-axis": "cuboid", change: (event) => go(among(place, event.target.value.split("-").map(Number)), "axis-cuboid") }, none, ...options);
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
    const choice = make("select", { "data-axis": a, change: (event) => go(to(Number(event.target.value)), `axis-${a}`) }, ...options);
    return make("label", {}, roles[split.indexOf(a)] || "", isolated(axis.name), ` ${say("by")} `, choice);
  });
  return make("div", { class: "tools", role: "group", "aria-label": say("levels_to_show") }, ...labels);
}

// What to split by; and what the labels list of an axis that is made of several columns.
function tools(place) {
  const legends = axes.map(({ name, told }, a) => told && place[a].k && told[place[a].k - 1]
    ? make("p", { class: "told" }, say("labels_list", { axis: apart(name), columns: apart(told[place[a].k - 1]) })) : null).filter(Boolean);
  return [choices(place), surenessChoice(), ...legends];
}

const splitName = (place, levels) => wordsOf(cuboidOf(place, []), levels);
const ownMargin = (place, a) => isCarried(cuboidOf(place, [a])) ? cuboidOf(place, [a]) : null;
const marginWords = (which) => which ? say("margins_sums", { which }) : say("margins_own");

function unsplitWords(place) {
  const isLast = released && !facts.released.some((one) => isCoarser(splitInto(place), one));
  return say(isLast ? "one_count_last" : "one_count");
}
