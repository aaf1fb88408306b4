// Elements and sentences. Labels come in as text alone, each isolated from what is around it.

const SURE = ["within ±5 %", "within ±25 %", "within ±75 %", "wider, or reaching 0"];
const number = new Intl.NumberFormat("en");
const compact = new Intl.NumberFormat("en", { notation: "compact", maximumSignificantDigits: 3 });
const briefest = new Intl.NumberFormat("en", { notation: "compact", maximumSignificantDigits: 2 });
const short = new Intl.NumberFormat("en", { maximumSignificantDigits: 3 });
const percent = (part) => `${short.format(100 * part)} %`;

function make(tag, attributes, ...children) {
  const svg = ["svg", "line", "circle"].includes(tag);
  const made = svg ? document.createElementNS("http://www.w3.org/2000/svg", tag)
    : document.createElement(tag);
  for (const [name, value] of Object.entries(attributes || {})) {
    if (value === undefined || value === false) continue;
    if (typeof value === "function") made.addEventListener(name, value);
    else made.setAttribute(name, value === true ? "" : value);
  }
  made.append(...children.filter((one) => one !== null && one !== undefined));
  return made;
}

const isolated = (words) => make("bdi", {}, words);
const interval = ({ count, low, high }) =>
  low === high && low === count ? "exact" : `${number.format(low)} to ${number.format(high)}`;

// A count that its own noisy counts contradict has an estimate to quote in its place.
const isContradicted = ({ estimate }) => estimate !== undefined;
const contradiction = (item) => isContradicted(item)
  ? `contradicted by its own noisy counts: unbiased estimate ${number.format(item.estimate)}` : "";
const doubt = (item) => isContradicted(item) ? " doubt" : "";

function sentence(item) {
  if (item.of > 1) return `: ${number.format(item.count)} in ${item.of} ranges, ${percent(item.part)} of the whole shown`;
  const sure = item.low === item.high ? interval(item) : `95 % interval ${interval(item)}`;
  const told = isContradicted(item) ? `${sure}; ${contradiction(item)}` : sure;
  return `: ${number.format(item.count)} (${told}), ${percent(item.part)} of the whole shown`;
}

const spoken = (item) => item.name + sentence(item) + (item.opens ? ". Opens." : ".");

function sureness({ count, low, high }) {
  const half = (high - low) / 2 / count;
  if (half > 0 && (low === 0 || half > 0.75)) return 3;
  return half <= 0.05 ? 0 : half <= 0.25 ? 1 : 2;
}

function nameOf(codes) {
  const named = axes.map((_axis, a) => {
    const { level: k, code } = codes[a];
    if (k === 0) return null;
    const what = levelName(a, k);
    return `${what} ${label(a, k, code)}`;
  });
  return named.filter(Boolean).join(" × ") || "Everything";
}
