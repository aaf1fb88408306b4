// Counts and codes out of the blocks of the page, each when it is first needed.

const { axes, steps, depths, files, last, numeric, total } = facts;
const unit = facts.unit;
const held = new Map();
let sure = 1; // which of the levels of `facts.sure` intervals are shown at
standing.sure = facts.sure[sure];

// What a level is called where no other level of its axis stands beside it.
function levelName(a, k) {
  const { name, levels, alone } = axes[a];
  if (alone) return alone[k - 1];
  return axes.length > 1 ? `${name} ${levels[k - 1]}` : levels[k - 1];
}

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
function owner(start, child) {
  let low = 0, high = start.length - 1;
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

async function readDepth(t) {
  const [usual, sizes, step, count, over, under] = (await parts(`depth-${t}`)).map(numbers);
  const start = starts(sizes), n = count.length, width = usual[0];
  const place = new Uint32Array(n), low = new Float64Array(n), high = new Float64Array(n);
  for (let family = 0; family < sizes.length; family++) {
    let at = -1;
    for (let i = start[family]; i < start[family + 1]; i++) place[i] = at += step[i] + 1;
  }
  for (let i = 0; i < n; i++) {
    high[i] = count[i] + unfolded(over[i]);
    low[i] = Math.max(0, high[i] - width) + unfolded(under[i]);
  }
  const estimates = new Map();
  if (document.getElementById(`contradicted-${t}`)) {
    const [gaps, values] = (await parts(`contradicted-${t}`)).map(numbers);
    let at = -1;
    gaps.forEach((gap, k) => estimates.set(at += gap + 1, unfolded(values[k])));
  }
  const ends = await readEnds(t, low, high);
  held.set(`depth-${t}`, { start, place, count, get low() { return ends.low; }, get high() { return ends.high; }, estimates });
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

async function need(deepest) {
  for (let t = 1; t <= Math.min(deepest, last); t++) {
    if (held.has(`depth-${t}`)) continue;
    await readLevel(...steps[t - 1]);
    await readDepth(t);
  }
}

const depth = (t) => held.get(`depth-${t}`);
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
