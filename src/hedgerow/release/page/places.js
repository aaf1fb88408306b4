// Where one can be: the areas that are asked about, and the counts shown around them.
//
// A place is for each axis an area: its number `code` among those of level `c`; everything at level 0.
// A view is a place whose areas are split into those of a level `k`; not split where k is c.

const finest = axes.map((axis) => axis.levels.length);
const everything = axes.map(() => ({ c: 0, code: 0 }));
const keyOf = (levels) => levels.join("-");
const carried = new Set(facts.cuboids.map(keyOf));
const isCarried = (levels) => carried.has(keyOf(levels));
const depthOf = (levels) => levels.reduce((sum, k) => sum + k, 0);
const isWithin = (one, other) => one.every((k, a) => k <= other[a]);
const isCoarser = (one, other) => isWithin(one, other) && keyOf(one) !== keyOf(other);

const levelsOf = (place) => place.map(({ c }) => c);
const splitInto = (view) => view.map(({ k }) => k);
const splitAxes = (view) => [...axes.keys()].filter((a) => view[a].k > view[a].c);
// The cuboid of a view where only some axes are split.
const cuboidOf = (view, split) => view.map(({ c, k }, a) => (split.includes(a) ? k : c));
// The cuboid of what the areas of one axis have in all.
const alone = (view, a) => view.map(({ k }, b) => (b === a ? k : 0));
const among = (place, levels) => place.map(({ c, code }, a) => ({ c, code, k: levels[a] }));
const areasOf = (place) => place.map(({ c, code }) => `${c}.${code}`).join("-");
const isSame = (one, other) => areasOf(one) === areasOf(other) && String(one.map(({ k }) => k)) === String(other.map(({ k }) => k));

// Whether both axes have the same levels, as flows from place to place have.
const isFlow = axes.length === 2 && String(axes[0].levels) === String(axes[1].levels);

// The cuboids that the page carries below some levels: first what is split along one axis, of flows
// along the other end, along the first of several, the ranges of a column after all others; and last
// what has no more counts than is split.
function below(levels) {
  const grows = (k, a) => facts.sizes[a][k] > facts.sizes[a][levels[a]];
  const rank = (one) => {
    const split = [...axes.keys()].filter((a) => one[a] > levels[a]);
    const again = isFlow && split.some((a) => levels[a] > 0), isIdle = !one.some(grows);
    return [split.length, isIdle, again, split[0] === numeric, split[0], depthOf(one)].reduce((sum, part) => 100 * sum + Number(part), 0);
  };
  return facts.cuboids.filter((one) => isCoarser(levels, one)).sort((x, y) => rank(x) - rank(y));
}
const isKnown = (place) => facts.cuboids.some((levels) => isWithin(levelsOf(place), levels));

// The areas of coarser levels that those of a place lie in.
function within(place, levels) {
  return place.map((area, a) => {
    let { c, code } = area;
    for (; c > levels[a]; c--) code = owner(level(a, c).start, code);
    return { c, code };
  });
}

// The places above one: each axis a level up, where that was released; if none was, the nearest.
function above(place) {
  const own = levelsOf(place), steps = axes.map((_axis, a) => own.map((c, b) => (b === a ? c - 1 : c)));
  const near = steps.filter((levels) => Math.min(...levels) >= 0 && isCarried(levels));
  const far = facts.cuboids.filter((levels) => isCoarser(levels, own)).sort((x, y) => depthOf(y) - depthOf(x)).slice(0, 1);
  return (near.length ? near : far).map((levels) => within(place, levels));
}

// What a place is a part of: of several areas what each of them has in all, else what is above.
function wholes(place) {
  const own = levelsOf(place), isSeveral = own.filter(Boolean).length > 1;
  const margins = own.map((_c, a) => own.map((c, b) => (b === a ? 0 : c))).filter((levels, a) => isSeveral && own[a] && isCarried(levels));
  return margins.length ? margins.map((levels) => within(place, levels)) : above(place);
}

// ---- views ----

// A place split by the coarsest counts below it; null where there are none.
function opened(place) {
  const [first] = below(levelsOf(place));
  return first ? among(place, first) : null;
}

// Of two axes: one stays as it is asked for, and all areas of the other stand beside the one asked for.
function sideOf(place, kept) {
  const own = levelsOf(place), other = 1 - kept;
  const levels = own[other] ? own : below(own).find((one) => one[kept] === own[kept]);
  return levels && isCarried(levels) ? among(place.map((one, a) => (a === kept ? one : everything[a])), levels) : null;
}

// Of two axes: both split at once, within a place or else within the areas around it.
function crossing(place) {
  const levels = below(levelsOf(place)).find((one) => one.every((k, a) => k > place[a].c));
  if (levels) return among(place, levels);
  return place.some(({ c }) => c) ? crossing(within(place, levelsOf(place).map((c) => Math.max(0, c - 1)))) : null;
}

// What is shown around a place that somebody asks for: what is below it, or else what is beside it.
function usual(place) {
  const own = levelsOf(place);
  if (axes.length === 2 && own.every(Boolean)) {
    const side = sideOf(place, 0);
    if (side) return side;
  }
  return opened(place) || siblings(place);
}

function siblings(place) {
  const own = levelsOf(place), a = own.findLastIndex(Boolean);
  return a < 0 ? among(place, own) : among(within(place, own.map((c, b) => (b === a ? c - 1 : c))), own);
}

// What is shown after a count of a view is chosen: a pair is marked where it stands, others open,
// along the same axes as they were split along where that goes on.
function after(view, place) {
  const own = levelsOf(place), split = splitAxes(view), isPair = axes.length === 2 && own.every(Boolean);
  if (isPair && split.length === 1) return view;
  const along = below(own).find((one) => one.every((k, a) => (k > own[a]) === split.includes(a)));
  return along ? among(place, along) : isPair ? view : opened(place) || view;
}

// ---- addresses ----

// The place of a code among those of a level; the level must have been read.
function placeOfCode(a, k, code) {
  const key = `codes-${a}-${k}`;
  if (!held.has(key)) held.set(key, new Map(level(a, k).labels.map((_own, at) => [wholeCode(a, k, at), at])));
  return held.get(key).get(code);
}

// An area in an address: its code; behind its level where an area of a coarser level has the same.
function addressOf({ c, code }, a) {
  if (!c) return "";
  const words = wholeCode(a, c, code), safe = encodeURIComponent(words).replaceAll("-", "%2D");
  const isTaken = [...Array(c - 1).keys()].some((k) => placeOfCode(a, k + 1, words) !== undefined);
  return isTaken ? `${c}:${safe}` : safe;
}

// The area of an address, read level by level until it is found.
async function areaAt(words, a) {
  const [, wanted, code] = /^(?:(\d+):)?(.*)$/s.exec(words), own = decodeURIComponent(code);
  if (own === "") return everything[a];
  for (let c = 1; c <= Math.min(finest[a], wanted || finest[a]); c++) {
    await readLevels(axes.map((_axis, b) => (b === a ? c : 0)));
    const found = level(a, c) && (!wanted || c === Number(wanted)) ? placeOfCode(a, c, own) : undefined;
    if (found !== undefined) return { c, code: found };
  }
  return undefined;
}

let coloured = "count"; // what colours a map

function written({ place, view }) {
  const plain = (one) => one.map(addressOf).join("-"), usually = usual(place);
  const parts = [`place=${plain(place)}`];
  if (areasOf(view) !== areasOf(usually)) parts.push(`in=${plain(view)}`);
  if (!isSame(view, usually)) parts.push(`by=${splitInto(view).join("-")}`);
  if (coloured !== "count") parts.push(`map=${coloured}`);
  return `#${parts.join("&")}`;
}

// What an address asks for; null where that is not in the release.
async function asked(hash) {
  const given = Object.fromEntries(hash.slice(1).split("&").map((part) => part.split("=")));
  if (given.place === undefined) return null;
  try {
    const placeAt = (words) => {
      const parts_ = axes.length === 1 ? [words] : words.split("-");
      return parts_.length > axes.length ? [] : Promise.all(axes.map((_axis, a) => areaAt(parts_[a] || "", a)));
    };
    const place = await placeAt(given.place), scope = given.in === undefined ? null : await placeAt(given.in);
    if (![place, scope || place].every((one) => one.length && one.every(Boolean)) || !isKnown(place)) return null;
    const around = scope || (given.by ? place : usual(place));
    const levels = given.by ? given.by.split("-").map(Number) : splitInto(usual(place));
    const fits = levels.length === axes.length && isWithin(levelsOf(around), levels) && facts.released.some((one) => keyOf(one) === keyOf(levels));
    return { place, view: fits ? among(around, levels) : usual(place), map: ["share", "per_km2", "median"].find((one) => one === given.map) };
  } catch {
    return null;
  }
}
