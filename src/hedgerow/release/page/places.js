// Where one can be: areas of the axes, each split into the areas of one of its levels.
//
// A place is what is looked at, for each axis: an area, by its number `code` among those of level
// `c` (everything at level 0), and the level `k` that it is split into; not split where k is c.
// What a place is split into, and where it leads, a design's own script says: chain.js, cuboids.js.

const finest = axes.map((axis) => axis.levels.length);
const everything = axes.map(() => ({ c: 0, code: 0, k: 0 }));
const carried = new Set(facts.cuboids.map((levels) => levels.join("-")));
const isCarried = (levels) => carried.has(levels.join("-"));
const released = facts.released && new Set(facts.released.map((levels) => levels.join("-")));
const isReleased = (levels) => !released || released.has(levels.join("-"));
const depthOf = (levels) => levels.reduce((sum, k) => sum + k, 0);
const isCoarser = (one, other) => one.every((k, a) => k <= other[a]) && one.some((k, a) => k < other[a]);

const written = (place) => place.map(({ c, code, k }) => `${c}.${code}.${k}`).join("-");
const areasOf = (place) => place.map(({ c, code }) => `${c}.${code}`).join("-");
const splitAxes = (place) => [...axes.keys()].filter((a) => place[a].k > place[a].c);
// The cuboid of a place where only some axes are split, and the one that it is split into.
const cuboidOf = (place, split) => place.map(({ c, k }, a) => (split.includes(a) ? k : c));
const splitInto = (place) => place.map(({ k }) => k);
const isThere = (place) => isCarried(cuboidOf(place, [])) && isReleased(splitInto(place));
const among = (place, levels) => place.map(({ c, code }, a) => ({ c, code, k: levels[a] }));
const named = (place) => place.map(({ c, code }) => ({ level: c, code }));

function placeOf(hash) {
  const asked = /^#at((?:-\d{1,3}\.\d{1,8}\.\d{1,3})+)$/.exec(hash);
  if (!asked) return null;
  const place = asked[1].slice(1).split("-").map((part) => {
    const [c, code, k] = part.split(".").map(Number);
    return { c, code, k };
  });
  const fits = place.length === axes.length && place.every(({ c, k }, a) => c <= k && k <= finest[a]);
  return fits && isThere(place) ? place : null;
}

// The areas of coarser levels that those of a place lie in.
function within(place, levels) {
  return place.map((area, a) => {
    let { c, code } = area;
    for (; c > levels[a]; c--) code = owner(level(a, c).start, code);
    return { c, code };
  });
}
