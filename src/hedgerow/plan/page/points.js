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

// What is not certified is said this much on the safe side: the page's own accountant's, and others.
const FINE = 1e-4;

// What a budget buys (ρ, or pure ε), from below for errors and from above for promises: certified,
// or as the page's own accountant has it, or by a line between certified ones.
function boughtBy(solver, points, division, shares, value) {
  if (points.kind !== "EpsilonDelta") return { whole: value, most: value };
  const place = points.values.indexOf(value);
  if (division && division.sure.includes(place)) {
    return { whole: division.wholes[place], most: division.wholes[place] };
  }
  const near = lineOf(points, division, value);
  if (!solver.moves) return { whole: near, most: MARGIN * near };
  const uses = usesOf(solver, shares), delta = points.delta_value;
  const several = isAlone(uses(near)) ? severalRoots(uses, value, delta, near) : null;
  if (several !== null && several.apart) return several;
  const rho = rhoOf(uses, value, delta, several === null ? near : several.whole);
  return { whole: rho * (1 - FINE), most: rho * (1 + FINE) };
}

// Whether nearly all is spent on narrow noise of one cuboid. The loss is nearly a lattice then, δ(ε)
// rises and falls with ρ, and an (ε, δ) budget may buy several.
function isAlone(uses) {
  const of = (some) => some.reduce((sum, [s, d]) => sum + d * d / s, 0);
  const narrowest = Math.min(...uses.map(([s]) => s));
  return narrowest < 4 && of(uses.filter(([s]) => s === narrowest)) > 0.8 * of(uses);
}

// The least of them, and the largest, a step outwards; and whether they are apart.
function severalRoots(uses, epsilon, delta, near) {
  const tried = Array.from({ length: 16 }, (_, k) => near * 1.035 ** (k - 9));
  const keeps = tried.map((rho) => logDelta(uses(rho), epsilon) <= Math.log(delta));
  const first = keeps.indexOf(false), last = keeps.lastIndexOf(true);
  return {
    whole: tried[Math.max(0, first - 1)], most: tried[Math.min(15, last + 1)],
    apart: first < 0 || first !== last + 1,
  };
}

// The noise that a ρ buys: pairs of a variance parameter and a move.
function usesOf(solver, shares) {
  const own = precisions(solver, solver.kind === "cube" ? cuboidShares(solver, shares) : shares, 1);
  return (rho) => own.flatMap((precision, i) => (precision > 0
    ? solver.moves[i].map((move) => [1 / (2 * precision * rho), move]) : []));
}

// The same by lines alone, for many budgets at once.
function lineOf(points, division, value) {
  if (points.kind !== "EpsilonDelta") return value;
  const each = division ? [division] : points.divisions;
  return Math.min(...each.map(({ wholes }) => between(points.values, wholes, value)));
}

// Up to three digits.
function roundedUp(value) {
  const unit = 10 ** (Math.floor(Math.log10(value)) - 2);
  return Number((Math.ceil(value / unit - 1e-9) * unit).toPrecision(3));
}

// ε at δ of a budget in ρ, from above.
function epsilonAt(solver, points, division, shares, value) {
  if (points.epsilons === null) return value;
  const near = guarded(points, points.epsilons, value);
  if (division && division.key === "own" && points.values.includes(value)) return near;
  if (!solver.moves) return near;
  return (1 + FINE) * epsilonOf(usesOf(solver, shares)(value), points.delta_value, near);
}

// How many of 100 differences an attacker notices at most: `hedgerow.privacy.profile`, Profile.power.
// Certified, or as the page's own accountant has it, or by a line between what holds at two budgets.
function foundOf(solver, points, division, shares, value, most) {
  const table = division ? division.found : points.found;
  const known = table ? table[points.values.indexOf(value)] ?? null : null;
  if (known !== null) return known;
  const found = solver.moves ? 100 * (1 + FINE) * powerOf(usesOf(solver, shares)(most))
    : guarded(points, table, value);
  return Math.min(100, roundedUp(found));
}
