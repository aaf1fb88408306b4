// What holds between budgets that were computed beforehand: see points.py.

// A line in logarithms between the values of a table, at budgets in ascending order.
function between(values, table, value) {
  let i = 0;
  while (i < values.length - 2 && value > values[i + 1]) i++;
  if (values.length < 2 || value === values[i]) return table[i];
  if (value === values[i + 1]) return table[i + 1];
  const part = Math.log(value / values[i]) / Math.log(values[i + 1] / values[i]);
  return Math.exp(Math.log(table[i]) + part * Math.log(table[i + 1] / table[i]));
}

const MARGIN = 1.01; // what a line may miss of a bound
const guarded = (points, table, value) =>
  between(points.values, table, value) * (points.values.includes(value) ? 1 : MARGIN);

const OWN_DIVISION = 0.995; // how much less ρ a division may get that nobody computed beforehand

// What a budget buys (ρ, or pure ε): of a division computed beforehand; or, of somebody's own, a
// little less than the least of those, as narrow noise may cost more than wide noise.
function wholeOf(points, division, value) {
  if (points.kind !== "EpsilonDelta") return value;
  const each = division ? [division] : points.divisions;
  const least = Math.min(...each.map(({ wholes }) => between(points.values, wholes, value)));
  return division ? least : OWN_DIVISION * least;
}

// The budget that buys this much, or more: rounded up to two digits.
function valueFor(points, division, whole) {
  let [low, high] = [points.values[0], points.values[points.values.length - 1]];
  if (wholeOf(points, division, low) >= whole) return low;
  if (wholeOf(points, division, high) < whole) return null;
  for (let i = 0; i < 60; i++) {
    const middle = Math.sqrt(low * high);
    if (wholeOf(points, division, middle) >= whole) high = middle; else low = middle;
  }
  return roundedUp(high);
}

function roundedUp(value) {
  const unit = 10 ** (Math.floor(Math.log10(value)) - 1);
  return Number((Math.ceil(value / unit - 1e-9) * unit).toPrecision(2));
}

// ε at δ of a budget: for one in ρ between certified values, with a margin.
const epsilonAt = (points, value) =>
  (points.epsilons === null ? value : guarded(points, points.epsilons, value));

// A bound of the privacy loss of whatever comes out, but for a chance δ: pure ε, or under ρ-zCDP
// ρ + 2√(ρ ln 1/δ) (Bun & Steinke 2016, proof of Proposition 1.3).
function lossOf(points, value) {
  if (points.kind === "Epsilon") return value;
  const most = Math.max(...points.divisions.map((each) => wholeOf(points, each, value)));
  const rho = points.kind === "Rho" ? value : most * 1.004;
  return rho + 2 * Math.sqrt(rho * Math.log(1 / Number(points.delta)));
}

// What a suspicion of 1 in 100 grows to at most: x in 100, rounded up; null for nearly all.
function suspicion(points, value) {
  const odds = Math.exp(lossOf(points, value)) / 99;
  const part = 100 * odds / (1 + odds);
  const parts = part < 10 ? 100 : 10;
  return part > 99.9 ? null : Math.min(99.9, Math.ceil(part * parts) / parts);
}

// How many of 100 an attacker finds at most who accuses five of 100 wrongly; rounded up.
function foundOf(points, value) {
  return Math.min(100, Math.ceil(100 * guarded(points, points.found, value)));
}
