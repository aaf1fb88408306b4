// Colours that say no more than a count does: eight where it is firm, four where it is rough, one
// where it is mostly noise.

const RAMP = ["#f1f0cf", "#b4d6a4", "#4fa58c", "#1f6a78", "#15294d"].map((hex) => [1, 3, 5].map((i) => parseInt(hex.slice(i, i + 2), 16)));
const SUPPRESSED = [0xcf, 0xd3, 0xd1], BINS = 8, SCALE = 200, HATCH = "url(#atlas-hatch)";
const mixed = (one, other, part) => one.map((value, i) => value + (other[i] - value) * part);
const css = (colour) => `rgb(${colour.map(Math.round).join(",")})`;

function rampAt(part) {
  const at = Math.min(3.999, 4 * part), i = Math.floor(at);
  return mixed(RAMP[i], RAMP[i + 1], at - i);
}

function binColour(bin, sure) {
  if (sure === NOISE) return HATCH;
  return css(shade(bin, sure));
}

function shade(bin, sure) {
  return sure === FIRM ? rampAt(bin / 7) : mixed(rampAt((Math.floor(bin / 2) * 2 + 0.5) / 7), SUPPRESSED, 0.45);
}

// Whether words on a colour are to be white.
const isDark = (bin, sure) => sure !== NOISE && shade(bin, sure).reduce((sum, part, i) => sum + part * [0.21, 0.72, 0.07][i], 0) < 128;

const ROUND = [1, 1.5, 2, 3, 5, 7, 10];

// The nearest figure of a few digits; of none, one of those that people count in.
function rounded(value, digits) {
  if (digits) return Number(value.toPrecision(digits));
  const power = 10 ** Math.floor(Math.log10(value)), away = (one) => Math.abs(Math.log(one * power / value));
  return power * ROUND.reduce((best, one) => (away(one) < away(best) ? one : best));
}

// Where one colour ends and the next begins: evenly apart in proportion, as round as that can be.
// Steps between counts are whole; between other figures, at most some largest one, need not be.
function breaksOf(counts, { most = Infinity, isWhole = true } = {}) {
  const sorted = counts.filter((count) => count > 0).sort((x, y) => x - y);
  const first = sorted.length ? sorted[Math.floor(0.03 * sorted.length)] : 1, low = first < most ? first : most / 2;
  const high = Math.min(most, Math.max(sorted.at(-1) || 0, 2 * low));
  const at = Array.from({ length: BINS - 1 }, (_one, i) => low * (high / low) ** ((i + 1) / BINS));
  for (const digits of [0, 2, 3, 4]) {
    const found = at.map((value) => (isWhole ? Math.ceil(rounded(value, digits)) : rounded(value, digits)));
    if (found.every((value, i) => value <= high && (i ? value > found[i - 1] : value > low))) return found;
  }
  return isWhole ? at.map((_value, i) => low + i + 1) : at;
}

const binOf = (breaks, count) => breaks.filter((end) => count >= end).length;

function svg(tag, attributes, ...children) {
  const made = document.createElementNS("http://www.w3.org/2000/svg", tag);
  for (const [name, value] of Object.entries(attributes)) if (value !== undefined && value !== false) made.setAttribute(name, value);
  made.append(...children.filter(Boolean));
  return made;
}

function hatch(id, step) {
  return svg("defs", {}, svg("pattern", { id, width: step, height: step, patternUnits: "userSpaceOnUse", patternTransform: "rotate(45)" },
    svg("rect", { width: step, height: step, fill: "#eceeed" }), svg("rect", { width: step * 0.24, height: step, fill: "#aab1ad" })));
}

// The legend: three rows of one scale, as many shades as each kind of count allows.
function keyOfColours(breaks, { name, write }) {
  const [low, high] = [breaks[0], breaks.at(-1)].map(write);
  const made = svg("svg", { class: "scale", viewBox: "0 0 300 84", role: "img",
    "aria-label": say("map_scale", { name, firm: RELIABILITY[FIRM], rough: RELIABILITY[ROUGH], noise: RELIABILITY[NOISE], low, high }) },
  hatch("atlas-hatch-key", 6));
  [[8, FIRM], [4, ROUGH], [1, NOISE]].forEach(([shades, sure], row) => {
    for (let k = 0; k < shades; k++) {
      const wide = SCALE / shades, fill = sure === NOISE ? "url(#atlas-hatch-key)" : binColour(k * (8 / shades), sure);
      made.append(svg("rect", { x: k * wide, y: 20 + 21 * row, width: wide, height: 19, fill, stroke: "#fff" }));
    }
    made.append(svg("text", { x: SCALE + 8, y: 34 + 21 * row, class: "name" }, RELIABILITY[sure]));
  });
  breaks.forEach((end, k) => {
    if (k % 2 === 0) made.append(svg("text", { x: (k + 1) * SCALE / 8, y: 13, "text-anchor": "middle" }, write(end)));
  });
  return make("div", {}, make("p", {}, isolated(capital(name))), made);
}
