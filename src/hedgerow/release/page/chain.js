// Cuboids that each refine the one before by a level: where one is says what comes next.

const chain = facts.released || [0, ...axes[0].levels.keys()].map((_k, t) => [t]);
const last = facts.cuboids.length - 1; // the deepest that the page carries
const depthAt = (place) => depthOf(cuboidOf(place, []));
// Whether a picture goes down two steps at once, as they refine different axes.
const isPair = (t) => t + 2 <= last && chain[t].filter((k, a) => chain[t + 2][a] > k).length === 2;

const usual = (place) => among(place, chain[Math.min(depthAt(place) + (isPair(depthAt(place)) ? 2 : 1), last)]);
const START = last >= 1 && facts.start.length ? usual(everything) : [];
const tellsUnbiased = false;
const isSearched = axes.length === 1 && !numeric;

function opened(levels, codes) {
  const to = usual(levels.map((c, a) => ({ c, code: codes[a] })));
  return splitAxes(to).length ? to : undefined;
}

const foundAt = (_axis, c, code) => usual([{ c, code }]);

// One step up, or two where the picture above shows two.
function up(place) {
  const t = depthAt(place), isOneStep = isPair(t) && depthOf(splitInto(place)) === t + 1;
  return usual(within(place, chain[t > 1 && isPair(t - 2) && !isOneStep ? t - 2 : t - 1]));
}

function trails(place) {
  const steps_ = chain.slice(0, depthAt(place) + 1).map((levels, t) => {
    const at = within(place, levels), a = t ? levels.findIndex((k, b) => k > chain[t - 1][b]) : 0;
    const own = t ? label(a, levels[a], at[a].code) : say("everything");
    return [t && axes.length > 1 ? `${axes[a].name} ${own}` : own, usual(at)];
  });
  return [[say("where"), steps_]];
}

function tools(place) {
  const t = depthAt(place), now = splitInto(place).join("-");
  const views = [2, 1].filter(() => isPair(t)).map((steps) => make("button", {
    type: "button", "aria-pressed": String(chain[t + steps].join("-") === now), "data-axis": `view${steps}`,
    click: () => go(among(place, chain[t + steps]), `axis-view${steps}`),
  }, isolated(splitName(place, chain[t + steps]))));
  const show_ = make("div", { class: "tools", role: "group", "aria-label": say("what_to_show") }, say("show"), make("div", {}, ...views));
  return [surenessChoice(), ...(views.length ? [show_] : [])];
}

const splitName = (_place, levels) => wordsOf(chain[0], levels);
const ownMargin = () => null;
const marginWords = () => say("margins_all");

function unsplitWords(place) {
  const next = chain[depthAt(place) + 1];
  return next ? say("below_in_file", { file: fileOf(next) }) : say("finest");
}
