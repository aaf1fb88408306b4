// One search for an area, or for a pair or more of them, wherever they are in the release.

const MOST_FOUND = 12, EACH = 6;
const plain = (words) => words.normalize("NFD").replace(/[\u0300-\u036f\u2068\u2069]/g, "").toLowerCase();
const MARKS = Object.fromEntries(number.formatToParts(1234567.5).map(({ type, value }) => [type, value]));
const wordsIn = (query) => plain(query).split(/\s+/).filter(Boolean);
let index = null;

// Every area of the levels that the page carries, with its words.
async function indexed() {
  if (index) return index;
  const found = [];
  await readLevels(finest);
  for (const [a, axis] of axes.entries()) {
    for (let k = 1; k <= axis.levels.length && level(a, k); k++) {
      if (!isKnown(placeOf({ a, c: k, code: 0 }))) continue; // no counts of it are here
      level(a, k).labels.forEach((_own, code) => found.push({ a, c: k, code, words: plain(label(a, k, code)) }));
    }
  }
  index = found;
  return index;
}

const RANGE = /\[([^ ,]+)( or less)?, ([^ )\]]+)( or more)?([)\]])/; // as their codes are written, whatever the language

// The ranges of a column that hold a number, the narrowest first; none where the words are no number.
function holding(areas, query) {
  const value = isColumn && query.trim() ? Number(query.replaceAll(MARKS.group, "").replace(/\s/g, "").replace(MARKS.decimal, ".")) : NaN;
  const isIn = ({ a, c, code }) => {
    const [, low, less, high, more, end] = RANGE.exec(wholeCode(a, c, code)) || [];
    return (less || Number(low) <= value) && (more || value < Number(high) || (end === "]" && value === Number(high)));
  };
  return Number.isNaN(value) ? [] : areas.filter(isIn).reverse();
}

const isCalled = ({ words: own }, whole) => own === whole || own.startsWith(`${whole} (`) || own.endsWith(`(${whole})`);

// Those with all words of a query: first the area that is called so, then such as begin so; coarse before fine.
function matching(areas, words) {
  if (!words.length) return [];
  const whole = words.join(" ");
  const found = [0, 1, 2].map(() => Array.from({ length: Math.max(...finest) + 1 }, () => []));
  for (const area of areas) {
    const own = area.words;
    if (!words.every((word) => own.includes(word))) continue;
    const rank = isCalled(area, whole) ? 0 : own.startsWith(whole) ? 1 : 2;
    found[rank][area.c].push(area);
  }
  return found.flat(2);
}

// Whether the first of what was found is meant: alone, or alone called so.
const isMeant = (areas, words) => areas.length === 1 || areas.filter((one) => isCalled(one, words.join(" "))).length === 1;

const placeOf = (...areas) => everything.map((all, a) => areas.find((one) => one.a === a) || all);

// Places of a query: areas of one axis; else the first words are of one axis and the others of another.
// The first of them, how many there are, and whether the first is meant.
function placesOf(areas, query) {
  const words = wordsIn(query), ranges = holding(areas, query), single = ranges.length ? ranges : matching(areas, words);
  if (single.length || axes.length === 1) {
    return { n: single.length, places: single.slice(0, MOST_FOUND).map((one) => placeOf(one)), meant: ranges.length > 0 || isMeant(single, words) };
  }
  const joints = [plain(say("pair_to")), "→", "×"];
  for (let i = 1; i < words.length; i++) {
    const [one, other] = [words.slice(0, i), words.slice(i)].map((part) => part.filter((word) => !joints.includes(word)));
    const ends = [matching(areas, one), matching(areas, other)];
    const pairs = ends[0].slice(0, EACH).flatMap((x) => ends[1].filter(({ a }) => a > x.a).slice(0, EACH).map((y) => [x, y]));
    const known = pairs.filter((pair) => isCarried(levelsOf(placeOf(...pair))));
    const called = known.filter(([x, y]) => isCalled(x, one.join(" ")) && isCalled(y, other.join(" ")));
    if (known.length) return { n: known.length, places: known.slice(0, MOST_FOUND).map((pair) => placeOf(...pair)), meant: known.length === 1 || called.length === 1 };
  }
  return { n: 0, places: [], meant: false };
}

const titleOf = (place) => place.map(({ c, code }, a) => (c ? label(a, c, code) : null)).filter(Boolean).join(BETWEEN);
const levelsIn = (place) => place.map(({ c }, a) => (c ? levelName(a, c) : null)).filter(Boolean).join(BETWEEN);

// A field and the places that it finds: arrow keys move among them, Enter goes to one, or first to the
// list where several may be meant.
function finder() {
  const told = say(isColumn ? "find_range" : axes.length > 1 ? "find_pair" : "find_one");
  const list = make("ul", { id: "found", role: "listbox", "aria-label": told, hidden: true }), said = make("span", { class: "unseen", role: "status" });
  let found = [], at = -1;
  const close = () => { list.hidden = true; input.setAttribute("aria-expanded", "false"); input.removeAttribute("aria-activedescendant"); };
  const open = (place) => {
    close();
    input.value = "";
    go({ place, view: usual(place) }, "here");
  };
  const point = (to) => {
    at = (to + found.length) % found.length;
    [...list.children].forEach((one, i) => one.setAttribute("aria-selected", String(i === at)));
    input.setAttribute("aria-activedescendant", `found-${at}`);
  };
  const look = async () => {
    const query = input.value, { n, places, meant } = placesOf(await indexed(), query);
    if (input.value !== query) return; // someone typed on meanwhile
    [found, at] = [places, -1];
    input.removeAttribute("aria-activedescendant");
    const isMissed = wordsIn(query).length > 0 && !n;
    said.className = isMissed ? "" : "unseen";
    said.replaceChildren(isMissed ? say("none_found") : wordsIn(query).length ? say("found", { n }) : "");
    list.replaceChildren(...found.map((place, i) => make("li", { id: `found-${i}`, role: "option", click: () => open(place) },
      make("b", {}, isolated(titleOf(place))), make("small", {}, ` ${levelsIn(place)}`))));
    if (!found.length) return close();
    list.hidden = false;
    input.setAttribute("aria-expanded", "true");
    if (meant) point(0);
  };
  const input = make("input", { id: "find", type: "search", role: "combobox", autocomplete: "off", spellcheck: "false", "aria-expanded": "false", "aria-controls": "found", "aria-autocomplete": "list",
    input: look, focus: indexed, keydown: async (event) => {
      const step = { ArrowDown: 1, ArrowUp: -1 }[event.key];
      if (step && found.length && !list.hidden) point(at < 0 && step < 0 ? -1 : at + step);
      else if (event.key === "Escape") close();
      else if (event.key === "Enter") {
        event.preventDefault();
        if (list.hidden) await look();
        if (found.length && at < 0) point(0);
        else if (found.length) open(found[at]);
      } else return;
      if (step) event.preventDefault();
    } });
  input.addEventListener("blur", () => setTimeout(close, 200)); // behind a click on one of them
  return make("div", { class: "finder", role: "search" }, make("label", { for: "find" }, told),
    make("div", {}, input, list), said);
}
