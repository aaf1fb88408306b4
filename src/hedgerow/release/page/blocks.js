// Counts and codes out of the blocks of the page, each when it is first needed.

const { axes, unit, numeric } = facts; // the last, where there is one, is the axis of a numeric column
const isColumn = numeric === 0 && axes.length === 1;
const held = new Map();
let sure = 1; // which of the levels of `facts.sure` intervals are shown at
standing.sure = facts.sure[sure];

// What a level is called where no other level of its axis stands beside it.
function levelName(a, k) {
  const { name, levels, alone } = axes[a];
  if (alone) return alone[k - 1];
  return axes.length > 1 ? `${name} ${levels[k - 1]}` : levels[k - 1];
}

// The levels that a cuboid has below another.
const wordsOf = (own, levels) => axes.map((_axis, a) => levels[a] > own[a]
  ? levelName(a, levels[a]) : null).filter(Boolean).join(" × ");

const fileOf = (levels) => `counts/cuboid=${levels.join("-")}.parquet`;

async function parts(name) {
  const text = atob(document.getElementById(name).textContent);
  const packed = new Uint8Array(text.length);
  for (let i = 0; i < text.length; i++) packed[i] = text.charCodeAt(i);
  const stream = new Blob([packed]).stream().pipeThrough(new DecompressionStream("deflate-raw"));
  const whole = new Uint8Array(await new Response(stream).arrayBuffer());
  const head = new DataView(whole.buffer);
  const count = head.getUint32(0, true);
  const found = [];
  let begin = 4 * (count + 1);
  for (let k = 1; k <= count; k++) {
    const size = head.getUint32(4 * k, true);
    found.push(whole.subarray(begin, begin + size));
    begin += size;
  }
  return found;
}

function numbers(bytes) {
  let count = 0;
  for (const byte of bytes) if (byte < 128) count++;
  const found = new Float64Array(count);
  let at = 0, value = 0, factor = 1;
  for (const byte of bytes) {
    value += (byte & 127) * factor;
    factor *= 128;
    if (byte < 128) { found[at++] = value; value = 0; factor = 1; }
  }
  return found;
}

const unfolded = (value) => (value % 2 ? -(value + 1) / 2 : value / 2);

function starts(sizes) {
  const start = new Uint32Array(sizes.length + 1);
  for (let i = 0; i < sizes.length; i++) start[i + 1] = start[i] + sizes[i];
  return start;
}

// The family that a child belongs to: the last one that begins at or before it.
// Of numbers in ascending order: the place of one of them.
function owner(start, child) {
  let low = 0, high = start.length;
  while (high - low > 1) {
    const middle = (low + high) >> 1;
    if (start[middle] <= child) low = middle; else high = middle;
  }
  return low;
}

// Where the intervals begin and end at each level that a reader can choose.
async function readEnds(name, low, high) {
  const ends = { low: [null, low, null], high: [null, high, null] };
  const found = (await parts(`intervals-${name}`)).map(numbers);
  for (const [k, at] of [[0, 0], [2, 3]]) {
    const [[beyond, width], over, under] = found.slice(at, at + 3), own = unfolded(beyond);
    ends.high[k] = high.map((end, i) => end + own + unfolded(over[i]));
    ends.low[k] = ends.high[k].map((end, i) => Math.max(0, end - width) + unfolded(under[i]));
  }
  return { get low() { return ends.low[sure]; }, get high() { return ends.high[sure]; } };
}

// The cells of a cuboid: their numbers in row-major order of the used codes of its levels, and their
// codes; counts, intervals and estimates; which of them their own measurements contradict, and which are exact.
async function readCuboid(levels) {
  const name = levels.join("-");
  if (held.has(`cuboid-${name}`)) return held.get(`cuboid-${name}`);
  await readLevels(levels);
  const [usual, gaps, count, over, under, off] = (await parts(`cuboid-${name}`)).map(numbers);
  const n = count.length, width = usual[0];
  const flat = new Float64Array(n), low = new Float64Array(n), high = new Float64Array(n), unbiased = new Float64Array(n);
  let at = -1;
  for (let i = 0; i < n; i++) {
    flat[i] = at += gaps[i] + 1;
    high[i] = count[i] + unfolded(over[i]);
    low[i] = Math.max(0, high[i] - width) + unfolded(under[i]);
    unbiased[i] = high[i] - Math.floor(width / 2) + unfolded(off[i]);
  }
  const marked = async (kind) => {
    const found = new Set();
    at = -1;
    if (document.getElementById(`${kind}-${name}`)) for (const gap of numbers((await parts(`${kind}-${name}`))[0])) found.add(at += gap + 1);
    return found;
  };
  const doubts = await marked("contradicted"), exact = await marked("exact");
  const sizes = levels.map((k, a) => (k ? level(a, k).labels.length : 1));
  const codesOf = (i) => {
    const codes = [];
    let rest = flat[i];
    for (let a = sizes.length - 1; a >= 0; a--) {
      codes[a] = rest % sizes[a];
      rest = Math.floor(rest / sizes[a]);
    }
    return codes;
  };
  const ends = n ? await readEnds(name, low, high) : { low, high };
  const cuboid = { quartiles: await readQuartiles(name), flat, sizes, codesOf, count, get low() { return ends.low; }, get high() { return ends.high; }, unbiased, doubts, exact };
  held.set(`cuboid-${name}`, cuboid);
  return cuboid;
}

// What is said of a cell: its count and interval, and whether no noise is in it; where that is
// contradicted, also its estimate; and how a numeric column is distributed within it.
const valueAt = ({ count, low, high, unbiased, doubts, exact, quartiles }, i) =>
  ({ quartiles: quartiles ? quartiles(i) : undefined, count: count[i], low: low[i], high: high[i], isExact: exact.has(i), unbiased: unbiased[i], estimate: doubts.has(i) ? unbiased[i] : undefined });

// The codes of the levels of a cuboid, and of those above them, as far as the page has them.
async function readLevels(levels) {
  for (const [a, k] of levels.entries()) {
    for (let l = 1; l <= k; l++) {
      const name = `level-${a}-${l}`;
      if (!held.has(name) && document.getElementById(name)) await readLevel(a, l);
    }
  }
}

async function readLevel(axis, level) {
  const [short, sizes, possible, text, names] = await parts(`level-${axis}-${level}`);
  const lines = (bytes) => new TextDecoder().decode(bytes).split("\n");
  held.set(`level-${axis}-${level}`, {
    short: numbers(short)[0] === 1,
    start: starts(numbers(sizes)),
    possible: numbers(possible),
    labels: lines(text),
    names: names ? lines(names) : [],
  });
}

const level = (axis, k) => held.get(`level-${axis}-${k}`);

function wholeCode(axis, k, code) {
  const known = level(axis, k);
  const own = known.labels[code];
  return known.short ? wholeCode(axis, k - 1, owner(known.start, code)) + own : own;
}

// Words that may run from right to left, so that what stands beside them keeps its order.
const apart = (words) => /[\u0590-\u08ff\ufb1d-\ufdff\ufe70-\ufefc]/.test(words) ? `\u2068${words}\u2069` : words;

// An area's name with its code after it, or the code alone.
function label(axis, k, code) {
  const own = apart(wholeCode(axis, k, code)), name = level(axis, k).names[code];
  return name ? `${apart(name)} (${own})` : own;
}

// What a small place has room for: a name, or the end of a code that begins as its parent's does.
function ending(axis, k, code) {
  const known = level(axis, k);
  if (known.names[code]) return known.names[code];
  return known.short ? `…${known.labels[code]}` : known.labels[code];
}
