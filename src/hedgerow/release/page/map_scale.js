// Colours that say no more than a count does: eight where it is firm, four where it is rough, one
// where it is mostly noise. The legend is a fan of them.

const RAMP = ["#f1f0cf", "#b4d6a4", "#4fa58c", "#1f6a78", "#15294d"].map((hex) => [1, 3, 5].map((i) => parseInt(hex.slice(i, i + 2), 16)));
const REACH = ["map_reach_0", "map_reach_1", "map_reach_2"];
const SUPPRESSED = [0xcf, 0xd3, 0xd1], BINS = 8, HATCH = "url(#atlas-hatch)";
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
function breaksOf(counts) {
  const sorted = counts.filter((count) => count > 0).sort((x, y) => x - y);
  const low = sorted.length ? sorted[Math.floor(0.03 * sorted.length)] : 1, high = Math.max(sorted.at(-1) || 0, 2 * low);
  const at = Array.from({ length: BINS - 1 }, (_one, i) => low * (high / low) ** ((i + 1) / BINS));
  for (const digits of [0, 2, 3, 4]) {
    const found = at.map((value) => Math.ceil(rounded(value, digits)));
    if (found.every((value, i) => value <= high && (i ? value > found[i - 1] : value > low))) return found;
  }
  return at.map((_value, i) => low + i + 1);
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

// The legend: a fan whose rim is firm counts, and whose tip is noise.
function fanOf(breaks) {
  const [cx, cy, spread] = [146, 186, 0.84], from = -Math.PI / 2 - spread;
  const at = (k, n) => from + 2 * spread * k / n;
  const point = (r, angle) => `${(cx + r * Math.cos(angle)).toFixed(1)} ${(cy + r * Math.sin(angle)).toFixed(1)}`;
  const piece = (inner, outer, a, b, fill) => svg("path", { fill, stroke: "#fff", "stroke-width": 1.5,
    d: `M${point(inner, a)}L${point(outer, a)}A${outer} ${outer} 0 0 1 ${point(outer, b)}L${point(inner, b)}A${inner} ${inner} 0 0 0 ${point(inner, a)}Z` });
  const made = svg("svg", { class: "fan", viewBox: "0 0 350 196", role: "img",
    "aria-label": say("map_fan", { firm: RELIABILITY[FIRM], rough: RELIABILITY[ROUGH], noise: RELIABILITY[NOISE], low: breaks[0], high: breaks.at(-1) }) },
  hatch("atlas-hatch-key", 6));
  for (let k = 0; k < 8; k++) made.append(piece(100, 148, at(k, 8), at(k + 1, 8), binColour(k, FIRM)));
  for (let k = 0; k < 4; k++) made.append(piece(52, 100, at(k, 4), at(k + 1, 4), binColour(2 * k, ROUGH)));
  made.append(piece(4, 52, at(0, 1), at(1, 1), "url(#atlas-hatch-key)"));
  breaks.forEach((end, k) => {
    const angle = at(k + 1, 8);
    made.append(svg("text", { x: cx + 166 * Math.cos(angle), y: cy + 162 * Math.sin(angle) + 4, "text-anchor": "middle" }, compact.format(end)));
  });
  [[124, FIRM], [76, ROUGH], [28, NOISE]].forEach(([r, sure]) => {
    const [x, y] = [cx + r * Math.cos(at(1, 1)) + 14, cy + r * Math.sin(at(1, 1)) + 6];
    made.append(svg("text", { x, y, class: "name" }, RELIABILITY[sure]), svg("text", { x, y: y + 15, class: "reach" }, say(REACH[sure])));
  });
  return made;
}
