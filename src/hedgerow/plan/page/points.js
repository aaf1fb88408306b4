// What a budget buys and promises: as it was computed beforehand (points.py), or of somebody's own division.

// What is not certified is said this much on the safe side: the page's own accountant's.
const FINE = 1e-4;

// What a budget buys (ρ, or pure ε), from below for errors and from above for promises: certified, or
// as the page's own accountant has it; and whether the latter is but a bound.
function boughtBy(solver, points, division, shares, place) {
  const value = points.values[place];
  if (division || points.kind !== "EpsilonDelta") {
    const whole = division ? division.wholes[place] : value;
    return { whole, most: whole, isBound: false };
  }
  const near = Math.min(...points.divisions.map(({ wholes }) => wholes[place]));
  const target = Math.log(points.delta_value);
  const composition = compositionOf(solver, shares);
  let isRounded = false;
  const above = (rho, doubt) => {
    const bought = composition(rho), log = bought.logDelta(value, doubt);
    isRounded = bought.isBound;
    return log - target;
  };
  const several = isAlone(composition(near).worst) ? severalRoots(above, near) : null;
  if (several !== null && several.isBound) return several;
  const from = several === null ? near : several.whole;
  const whole = rootOf((rho) => above(rho, 1), from, true);
  const most = above(whole, -1) > -FINE / 10 ? whole : rootOf((rho) => above(rho, -1), whole, true);
  return { whole: whole * (1 - FINE), most: most * (1 + FINE), isBound: isRounded };
}

// Whether nearly all is spent on narrow noise of one cuboid. The loss is nearly a lattice then, δ(ε)
// rises and falls with ρ, and an (ε, δ) budget may buy several.
function isAlone(uses) {
  const of = (some) => some.reduce((sum, [s, d, times]) => sum + times * d * d / s, 0);
  const narrowest = Math.min(...uses.map(([s]) => s));
  return narrowest < 4 && of(uses.filter(([s]) => s === narrowest)) > 0.8 * of(uses);
}

// The least of them, and the largest, a step outwards; and whether they are apart.
const TRIES = 32;

function severalRoots(above, near) {
  const tried = Array.from({ length: TRIES }, (_, k) => near * 1.035 ** (k - 9));
  const excess = tried.map((rho) => above(rho, 1)), from = tried.map((rho) => above(rho, -1));
  const first = excess.findIndex((one) => one > 0), last = from.findLastIndex((one) => one <= 0);
  return {
    whole: tried[Math.max(0, first - 1)], most: tried[Math.min(TRIES - 1, last + 1)],
    isBound: first < 0 || first !== last + 1,
  };
}

// What shares and an amount (ρ, or pure ε) buy, by case of what one unit does: the largest ρ of a
// case; the uses of that case; ln δ(ε) of the worst, from above or below (see accountant.js), and as
// it follows from ρ alone; whether the first, when last asked, was so far above that it is a bound.
function compositionOf(solver, shares) {
  const own = precisions(solver, solver.kind === "cube" ? cuboidShares(solver, shares) : shares, 1);
  const { law, price, moves, squares, changes } = solver;
  const rows = own.map((_precision, row) => row).filter((row) => own[row] > 0);
  const cases = (list) => Array.from({ length: Math.max(...rows.map((row) => list[row].length)) },
    (_, k) => rows.map((row) => [row, list[row][list[row].length > 1 ? k : 0]]));
  const sums = cases(squares).map((each) =>
    each.reduce((sum, [row, square]) => sum + square * price.rho * own[row] ** price.power, 0));
  const most = sums.indexOf(Math.max(...sums));
  const known = moves && cases(moves).map((each) =>
    gathered(each.flatMap(([row, shifts]) => shifts.map((shift) => [own[row], shift, 1]))));
  const norms = cases(law === "gaussian" ? squares : changes.map((each) => [Math.max(...each)]))
    .map((each) => gathered(each.filter(([, norm]) => norm > 0).map(([row, norm]) => [own[row], norm, 1])));
  return (whole) => {
    const rho = sums[most] * whole ** price.power, lattices = new Map();
    const one = { rho, worst: [], isBound: law === null, loose: (epsilon) => logDeltaOfRho(rho, epsilon) };
    const onLattice = (k, uses, epsilon, doubt) => {
      const key = `${k} ${doubt}`;
      if (!lattices.has(key)) lattices.set(key, latticeOf(uses(), doubt, law === "pairs" ? 1 << 15 : 1 << 13));
      return logDeltaOfLattice(lattices.get(key), epsilon);
    };
    const worst = (each, of) => Math.max(...each.map(of));
    if (law === "gaussian") {
      const bought = (uses) => uses.map(([part, move, times]) => [1 / (2 * part * whole), move, times]);
      const each = (known ?? norms).map(bought);
      if (!known) return { ...one, logDelta: (epsilon) => Math.min(one.loose(epsilon), logDeltaOfNorms(each, epsilon)) };
      one.worst = each[most];
      one.logDelta = (epsilon, doubt) => {
        const exact = each.map((uses) => logDeltaOfMoves(uses, epsilon, doubt));
        one.isBound = exact.some(Number.isNaN);
        return worst(exact, (log, k) => (Number.isNaN(log)
          ? onLattice(k, () => each[k].map(gaussianUse), epsilon, doubt) : log));
      };
      return one;
    }
    if (law === null) return { ...one, logDelta: one.loose };
    const pairs = (uses) => uses.map(([part, move, times]) => pairUse(part * move * whole, times));
    one.logDelta = (epsilon) => Math.min(one.loose(epsilon),
      worst(known ?? norms, (uses, k) => onLattice(k, () => pairs(uses), epsilon, 1)));
    return one;
  };
}

// Uses that are alike are one, used more often.
function gathered(uses) {
  const found = new Map();
  for (const [part, move, times] of uses) {
    const key = `${part} ${move}`;
    found.set(key, [part, move, times + (found.get(key)?.[2] ?? 0)]);
  }
  return [...found.values()];
}

// Up to a few digits.
function roundedUp(value, digits = 3) {
  const unit = 10 ** (Math.floor(Math.log10(value)) - digits + 1);
  return Number((Math.ceil(value / unit - 1e-9) * unit).toPrecision(digits));
}

// ε at δ of a budget in ρ, from above; and whether it follows from ρ alone.
function epsilonAt(solver, points, division, shares, place) {
  const value = points.values[place];
  if (points.kind !== "Rho") return { epsilon: value, isBound: false };
  if (division) return { epsilon: division.epsilons[place], isBound: false };
  const composition = compositionOf(solver, shares)(value), { rho } = composition;
  const at = (of, near) => (1 + FINE) * rootOf((epsilon) => of(epsilon, 1) - Math.log(points.delta_value), near, false);
  const enough = at(composition.loose, rho + 2 * Math.sqrt(rho * Math.log(1 / points.delta_value)));
  const epsilon = at(composition.logDelta, enough);
  return { epsilon: Math.min(epsilon, enough), isBound: composition.isBound || enough < epsilon };
}

// What a release costs in an account that is kept in ρ or in pure ε.
function costOf(solver, points, symbol, shares, { most }) {
  return points.kind === "Epsilon" && symbol === "ρ" ? compositionOf(solver, shares)(most).rho * (1 + 1e-12) : most;
}

// How many of 100 differences an attacker notices at most: `hedgerow.privacy.profile`, Profile.power.
function foundOf(solver, points, division, shares, place, most) {
  if (division) return division.found[place];
  return Math.min(100, roundedUp(100 * powerOf(compositionOf(solver, shares)(most)).power));
}

// The power of the best test with these false alarms: each line δ(ε) + e^ε α is above it, and the
// least of them reaches it (Dong, Roth & Su 2022, Proposition 2.12); and `at` which ε.
const FALSE_ALARMS = 0.05, QUANTILE = 1.645, GOLDEN = (Math.sqrt(5) - 1) / 2;

function powerOf({ rho, logDelta, loose }) {
  const mu = Math.sqrt(2 * rho), middle = mu * (QUANTILE - mu / 2);
  const line = (epsilon) => {
    const exact = logDelta(epsilon, 1), log = exact <= 0 ? Math.min(exact, loose(epsilon)) : loose(epsilon);
    return Math.exp(log) + FALSE_ALARMS * Math.exp(epsilon);
  };
  let low = middle - mu, high = middle + mu;
  let a = high - GOLDEN * (high - low), b = low + GOLDEN * (high - low), fa = line(a), fb = line(b);
  for (let i = 0; i < 8; i++) {
    if (fa < fb) {
      [high, b, fb, a] = [b, a, fa, b - GOLDEN * (b - low)];
      fa = line(a);
    } else {
      [low, a, fa, b] = [a, b, fb, a + GOLDEN * (high - a)];
      fb = line(b);
    }
  }
  return { power: Math.min(1, (1 + 10 * FINE) * Math.min(fa, fb)), at: fa < fb ? a : b };
}
