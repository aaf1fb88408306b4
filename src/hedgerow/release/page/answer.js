// The answer: one count with its interval, how sure it is, and what is above, beside and below it.

const answer = document.getElementById("answer");
const heading = document.querySelector("#counts h2");
const quartiles = isColumn && answer.querySelector(".beside") && [...answer.childNodes]; // while nothing else is asked for
const MOST_BUTTONS = 6, NEIGHBOURS = 3;
const BETWEEN = isFlow ? " → " : " × ";
const capital = (words) => words.slice(0, 1).toLocaleUpperCase(language) + words.slice(1);

// An area's name, or its code where it has none.
const areaName = (a, { c, code }) => apart(level(a, c).names[code] || wholeCode(a, c, code));
const nameOf = (place) => place.map((area, a) => (area.c ? areaName(a, area) : null)).filter(Boolean).join(BETWEEN) || say("everything");

// Where a view is, beside what it is split by; of several axes each area with its own.
const whereOf = (view) => view.map((area, a) => (area.c ? `${axes.length > 1 ? `${axes[a].name} ` : ""}${areaName(a, area)}` : null)).filter(Boolean).join(", ");

// Which level an area is of, its code where a name stands for it, and what it lies in.
function lineage(area, a) {
  const around = [];
  for (let c = area.c - 1; c > 0; c--) around.push(areaName(a, within([...everything.slice(0, a), area, ...everything.slice(a + 1)], everything.map((_one, b) => (b === a ? c : 0)))[a]));
  const code = level(a, area.c).names[area.code] ? ` ${apart(wholeCode(a, area.c, area.code))}` : "";
  const own = `${levelName(a, area.c)}${code}`;
  return around.length ? say("lies_in", { level: own, around: around.join(", ") }) : own;
}

const sureMark = (item) => [make("i", { class: `dot d${reliability(item)}`, "aria-hidden": "true" }), RELIABILITY[reliability(item)]];

// How sure is what is shown of an item: its count, or what colours its area.
const shownOf = (item) => (item.measured ? { ...item.measured, count: item.measured.value } : item);

// What is said of a count that is not listed. Public facts may tell that it is truly 0.
const zero = () => say(facts.zeros ? "map_none" : "map_unlisted");

// What is said of how sure a count is, with the mark that stands for it.
function sureWords(item) {
  if (item.isSum) return [say("is_sum")];
  if (item.isUnlisted) return [zero()];
  const known = make("b", {}, interval(item));
  return item.isExact ? [known]
    : [known, " ", make("span", { class: "together" }, `${say("interval")},`), " ", make("span", { class: "together" }, ...sureMark(item))];
}

// Whether a count may be read without its interval beside it.
const isRead = (item) => item.isSum || item.isExact || (!item.isUnlisted && reliability(item) !== NOISE);

function answerOf(place) {
  const isWhole = place.every(({ c }) => !c), item = itemAt(place);
  if (quartiles && isWhole) return quartiles;
  const under = place.map((area, a) => (area.c ? lineage(area, a) : null)).filter(Boolean).join("; ");
  return [
    make("div", {},
      make("h2", { tabindex: -1 }, isolated(item.name)),
      under ? make("p", { class: "under" }, isolated(under)) : null,
      make("p", { class: `figure${isRead(item) ? "" : " faint"}` }, make("strong", {}, number.format(item.count)), " ", isolated(unit)),
      make("p", { class: "interval" }, ...sureWords(item)),
      isContradicted(item) ? make("p", { class: "doubt" }, `≠ ${contradiction(item)}`) : null,
      ...(item.isSum || item.isUnlisted ? [] : wholes(place)).map((whole) => [whole, shareIn(countOf(whole), item)]).filter(([, share]) => share)
        .map(([whole, share]) => make("p", { class: "share" }, isolated(sharedOut(whole)), ": ", ...shareOf({ share }))),
      actions(item)),
    neighbours(place), spread(place, item),
  ].filter(Boolean);
}

// The end of an interval in three digits, rounded outwards.
function outwards(part, round) {
  const step = part > 0 ? 10 ** (Math.floor(Math.log10(part)) - 2) : 1;
  return round(Number((part / step).toPrecision(12))) * step;
}

// What is no count: its figure in no more digits than its interval leaves, and that interval.
function asSure({ value, low, high, write }) {
  const least = value && 10 ** Math.floor(Math.log10(Math.min(value, Math.max((high - low) / 2, value / 1000))));
  return write(value && Math.round(value / least) * least);
}
const rangeOf = ({ low, high, isExact, write }) => (isExact ? say("exact")
  : say("from_to", { low: write(outwards(low, Math.floor)), high: write(outwards(high, Math.ceil)) }));
const partOf = (part) => (part.value === undefined ? [part.untold] : [make("b", {}, asSure(part)), " ", make("small", {}, rangeOf(part))]);

// The share of a count in one that it is part of, with a set that holds it as surely as intervals do,
// whatever the correlation of both errors: Fieller's for a correlation of -1, the widest one, is from
// end to end of their intervals. Those are cut to whole counts, so they are taken a count wider. None
// where a count is mostly noise or contradicted, or the whole may be 0.
function shareIn(whole, item) {
  const [own, all] = [item, whole].map((one) => (one.isExact ? 0 : 1)), clamped = (part) => Math.max(0, Math.min(1, part));
  if (whole.low <= all || reliability(item) === NOISE || isContradicted(item) || isContradicted(whole)) return undefined;
  const [low, high] = [(item.low - own) / (whole.high + all), (item.high + own) / (whole.low - all)];
  return { value: item.count / whole.count, low: clamped(low), high: clamped(high), isExact: item.isExact && whole.isExact };
}

const sharedOut = (whole) => say("share", { whole: whereOf(whole) || say("the_total") });

// A share with its own interval, where there is one.
const shareOf = ({ share }) => (share ? partOf({ ...share, write: percent }) : []);

function actions(item) {
  const said = make("span", { role: "status" });
  const copier = (words, text) => make("button", { type: "button", click: async () => {
    await copy(text());
    said.replaceChildren(say("copied"));
  } }, words);
  const link = () => location.href.split("#")[0] + written(shown);
  const source = () => `${quoted(item)} ${facts.source}.${location.protocol === "file:" ? "" : ` ${link()}`}`;
  return make("div", { class: "tools actions" }, copier(say("copy_source"), source), copier(say("copy_link"), link),
    item.isSum || item.isUnlisted ? null : make("button", { type: "button", click: () => download([item]) }, say("download_one")), said);
}

function quoted(item) {
  const told = item.isSum || item.isUnlisted ? sureWords(item)[0] : isContradicted(item) ? contradiction(item)
    : item.isExact ? interval(item) : `${say("interval")} ${interval(item)}, ${RELIABILITY[reliability(item)]}`;
  return `${item.areas.map(([a, k, code]) => label(a, k, code)).join(BETWEEN) || item.name}: ${number.format(item.count)} ${unit} (${told}).`;
}

// Where a page may not write to the clipboard, what is selected can still be copied.
async function copy(text) {
  try {
    await navigator.clipboard.writeText(text);
  } catch {
    const field_ = make("textarea", { class: "unseen" });
    document.body.append(field_);
    field_.value = text;
    field_.select();
    document.execCommand("copy");
    field_.remove();
  }
}

// The largest counts of part of a cuboid, as links.
const largestOf = (place, levels, but) => cut(place, levels).found
  .map((i) => [i, held.get(`cuboid-${keyOf(levels)}`).count[i]]).sort((x, y) => y[1] - x[1]).slice(0, NEIGHBOURS + 1)
  .map(([i]) => held.get(`cuboid-${keyOf(levels)}`).codesOf(i).map((code, a) => ({ c: levels[a], code })))
  .filter((one) => areasOf(one) !== areasOf(but)).slice(0, NEIGHBOURS);

function neighbours(place) {
  const own = levelsOf(place), near = opened(place), finer = facts.released.find((one) => isCoarser(own, one));
  const link = (to) => make("li", {}, make("button", { type: "button", class: "open", click: () => go({ place: to, view: usual(to) }, "here") }, isolated(nameOf(to))),
    make("span", {}, number.format(countOf(to).count)));
  const some = (words, places) => (places.length ? [make("dt", {}, words), make("dd", {}, make("ul", {}, ...places.map(link)))] : []);
  const beside = isCarried(own) && own.some(Boolean) ? largestOf(siblings(place), own, place) : [];
  const last = near ? some(say("below_it", { level: wordsOf(own, splitInto(near)) }), largestOf(place, splitInto(near), place))
    : finer ? [make("dt", {}, say("below_it", { level: wordsOf(own, finer) })), make("dd", {}, say("below_in_file", { file: fileOf(finer) }))] : [];
  const around = siblings(place);
  return make("dl", { class: "near" }, ...some(say("above_it"), above(place)),
    ...some(around.some(({ c }) => c) ? say("beside_in", { area: nameOf(around) }) : say("beside_it"), beside), ...last);
}
