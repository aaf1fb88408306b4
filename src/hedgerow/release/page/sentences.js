// Sentences about counts. Labels come in as text alone, each isolated from what is around it.

// A count that its own noisy counts contradict has an estimate to quote in its place.
const isContradicted = ({ estimate }) => estimate !== undefined;
const contradiction = (item) => isContradicted(item)
  ? say("contradiction", { estimate: item.estimate }) : "";
const doubt = (item) => isContradicted(item) ? " doubt" : "";

function sentence(item) {
  const told = { count: item.count, part: percent(item.part), ranges: item.of };
  if (item.of > 1) return say("sentence_ranges", told);
  if (item.low === item.high) return say("sentence", { ...told, sure: interval(item) });
  const sure = `${say("interval")} ${interval(item)}, ${RELIABILITY[reliability(item)]}`;
  const more = isContradicted(item) ? contradiction(item)
    : item.unbiased === undefined ? "" : `${say("unbiased")} ${number.format(item.unbiased)}`;
  return say("sentence", { ...told, sure: more ? `${sure}; ${more}` : sure });
}

const spoken = (item) => item.name + sentence(item) + (item.opens ? say("opens") : ".");

function nameOf(codes) {
  const named = axes.map((_axis, a) => {
    const { level: k, code } = codes[a];
    if (k === 0) return null;
    const what = levelName(a, k);
    return `${what} ${label(a, k, code)}`;
  });
  return named.filter(Boolean).join(" × ") || say("everything");
}
