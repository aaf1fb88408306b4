// Sentences about counts. Labels come in as text alone, each isolated from what is around it.

// A count that its own noisy counts contradict has an estimate to quote in its place.
const isContradicted = ({ estimate }) => estimate !== undefined;
const contradiction = (item) => isContradicted(item)
  ? say("contradiction", { estimate: item.estimate }) : "";
const doubt = (item) => isContradicted(item) ? " doubt" : "";

function sentence(item) {
  if (item.of > 1) return say("sentence_ranges", { count: item.count, ranges: item.of });
  if (item.isUnlisted) return `: ${zero()}`;
  if (item.isSum) return say("sentence", { count: item.count, sure: say("is_sum") });
  const sure = item.isExact ? interval(item) : `${say("interval")} ${interval(item)}, ${RELIABILITY[reliability(item)]}`;
  return say("sentence", { count: item.count, sure: isContradicted(item) ? `${sure}; ${contradiction(item)}` : sure }) + measuredWords(item);
}

// What else colours an area.
function measuredWords({ measured }) {
  if (!measured) return "";
  const { name, at, value, untold } = measured;
  const sure = value !== undefined && `${say("interval", { sure: at })} ${rangeOf(measured)}, ${RELIABILITY[reliability(shownOf({ measured }))]}`;
  return say("measured", { name, told: sure ? `${asSure(measured)} (${sure})` : untold });
}

const spoken = (item) => item.name + sentence(item) + (item.opens ? say("opens") : ".");
