// ln δ(ε) of a composition, for any division of a budget, as `hedgerow.privacy.profile` has it: the
// figures are those of the worst case of what one unit can do. Upper bounds, but for round-off.

// Of discrete Gaussian noise whose moves are known: the exact accountant's integral
// (`hedgerow.privacy.accountant.contour`), to about 1e-5 and without its proof.

// With L the privacy loss and K(t) = ln E[e^{tL}] its cumulant, for any c > 0
//   δ(ε) = E[(1 - e^{ε - L})₊] = 1/π ∫₀^∞ Re[e^{K(t) - tε} / (t (t + 1))] du,   t = c + iu.

// Where a lattice keeps the integrand from falling, it is cut off.
const ENOUGH = 35, LONGEST = 50, MOST_NODES = 4000, LITTLE = 1e-5, MOST_CUT = 0.01;

// K of noise of variance parameter s whose count moves by d, by the series in which it is short:
//   (t + t²) d²/2s + ln(θ(td) / θ(0)),   θ(x) = Σ_n e^{-(n + x)²/2s} = √(2πs) Σ_k e^{-2π²sk² + 2πikx}.
// Both with the factor e^{d²u²/2s} taken into the sum, where it does not overflow.
function cumulantOf(s, d) {
  const byWaves = s > 1 / (2 * Math.PI);
  const least = byWaves ? 2 * Math.PI ** 2 * s : 1 / (2 * s);
  const reach = Math.ceil(Math.sqrt(ENOUGH / least)) + 1;
  let whole = 0;
  for (let n = -reach; n <= reach; n++) whole += Math.exp(-least * n * n);
  return (c, u) => {
    const scale = d * d / (2 * s);
    let re = 0, im = 0;
    if (byWaves) {
      const at = -d * u / (2 * Math.PI * s), middle = Math.round(at);
      for (let k = middle - reach; k <= middle + reach; k++) {
        const size = Math.exp(-least * (k - at) ** 2), angle = 2 * Math.PI * k * d * c;
        re += size * Math.cos(angle);
        im += size * Math.sin(angle);
      }
    } else {
      const at = -d * c, middle = Math.round(at);
      for (let n = middle - reach; n <= middle + reach; n++) {
        const size = Math.exp(-least * (n - at) ** 2), angle = -(n - at) * d * u / s;
        re += size * Math.cos(angle);
        im += size * Math.sin(angle);
      }
    }
    return [(c + c * c) * scale + Math.log(Math.hypot(re, im) / whole), (u + 2 * c * u) * scale + Math.atan2(im, re)];
  };
}

// From above (doubt 1) or from below (-1) by what is cut off; NaN where that is much (narrow noise).
// Uses: a variance parameter, a move, and how often.
function logDeltaOfMoves(uses, epsilon, doubt) {
  const rho = uses.reduce((sum, [s, d, times]) => sum + times * d * d / (2 * s), 0);
  let c = Math.max(0.5, (epsilon / rho - 1) / 2);
  for (let i = 0; i < 60; i++) {
    const slope = rho * (1 + 2 * c) - epsilon - 1 / c - 1 / (c + 1);
    c = Math.max(c / 2, c - slope / (2 * rho + 1 / c ** 2 + 1 / (c + 1) ** 2));
  }
  const cumulants = uses.map(([s, d, times]) => [cumulantOf(s, d), times]);
  const step = 2 * Math.PI / Math.max(Math.sqrt(4 * ENOUGH * rho), ENOUGH / c);
  const width = 1 / Math.sqrt(2 * rho);
  const nodes = Math.min(MOST_NODES, Math.ceil(Math.max(9 * width, LONGEST * c * c / width, 3 * c) / step));
  let base = 0, last = 0;
  const at = (u) => {
    let size = -c * epsilon, angle = -u * epsilon;
    last = 0;
    for (const [cumulant, times] of cumulants) {
      const [more, turn] = cumulant(c, u);
      size += times * more;
      angle += times * turn;
      if (u > 0 && size - base < -ENOUGH) return 0;
    }
    if (u === 0) base = size;
    const re = c * (c + 1) - u * u, im = u * (2 * c + 1);
    last = Math.exp(size - base);
    return last * (re * Math.cos(angle) + im * Math.sin(angle)) / (re * re + im * im);
  };
  // Until what is beyond (∫ du/u², of the mean size of late) is little, or there are too many.
  let sum = at(0) / 2, cut = Infinity;
  for (let i = 1, end = nodes; i <= MOST_NODES && cut > LITTLE * sum; end *= 2) {
    let size = 0, of = 0;
    for (; i <= Math.min(end, MOST_NODES); i++) {
      sum += at(i * step);
      if (i > end / 2) { size += last; of++; }
    }
    cut = size / of / ((i - 1) * step * step);
  }
  return cut < MOST_CUT * sum ? base + Math.log((sum + doubt * cut) * step / Math.PI) : NaN;
}

// Where the norms of the changes are all that is known: `hedgerow.privacy.accountant.domination`.
// Uses: a variance parameter, a squared norm, and how often.
const SMOOTHINGS = [1, 2, 3, 4, 6, 8, 12, 16].map((quarters) => quarters / 4);

function logDeltaOfNorms(cases, epsilon) {
  const worst = (of) => Math.max(...cases.map((uses) => uses.reduce((sum, use) => sum + of(use), 0)));
  const narrowest = Math.min(...cases.flat().map(([s]) => s));
  return Math.min(0, ...SMOOTHINGS.filter((smoothing) => smoothing < narrowest).map((smoothing) => {
    const q = Math.exp(-2 * Math.PI ** 2 * smoothing), eta = 2 * q / (1 - q);
    const mu = Math.sqrt(worst(([s, squared, times]) => times * squared / (s - smoothing)));
    const doubt = worst(([, squared, times]) => times * squared * Math.log1p(2 * eta / (1 - eta)));
    return doubt + logDeltaOfGaussian(epsilon - 2 * doubt, mu);
  }));
}

// Of one continuous Gaussian: φ(a) ∫₀^∞ e^{-t²/2 - at} (1 - e^{-μt}) dt, a = ε/μ - μ/2, by Simpson.
function logDeltaOfGaussian(epsilon, mu) {
  const a = epsilon / mu - mu / 2, end = 80 / (a + Math.sqrt(a * a + 80)), n = 400, h = end / n;
  const at = (t) => Math.exp(-t * t / 2 - a * t) * -Math.expm1(-mu * t);
  let sum = at(end);
  for (let i = 1; i < n; i++) sum += (i % 2 ? 4 : 2) * at(i * h);
  return -a * a / 2 + Math.log(sum * h / 3 / Math.sqrt(2 * Math.PI));
}

// Where ρ is all that is known (Canonne, Kamath & Steinke 2020, Proposition 12).
function logDeltaOfRho(rho, epsilon) {
  let low = -80, high = 80;
  for (let i = 0; i < 80; i++) {
    const middle = (low + high) / 2;
    if ((1 + 2 * Math.exp(middle)) * rho - epsilon < Math.log1p(Math.exp(-middle))) low = middle;
    else high = middle;
  }
  const a = Math.exp(low);
  return Math.min(0, a * ((1 + a) * rho - epsilon) - (1 + a) * Math.log1p(1 / a) - Math.log(a));
}

// Of losses of few values: on a lattice, each rounded up to it (doubt 1), or down (-1).
// Uses: losses, their chances, and how often.
function latticeOf(uses, doubt, cells) {
  const count = uses.reduce((sum, [, , times]) => sum + times, 0);
  const extent = uses.reduce((sum, [losses, , times]) => sum + times * (Math.max(...losses) - Math.min(...losses)), 0);
  const size = uses.reduce((sum, [losses, , times]) => sum + times * Math.max(...losses.map(Math.abs)), 0);
  const unit = Math.max(extent / (cells - 2 * count), 1e-9 * size);
  let first = 0, found = Float64Array.of(1);
  for (const [losses, chances, times] of uses) {
    const merged = new Map();
    losses.forEach((loss, j) => {
      const place = doubt * Math.ceil(doubt * loss / unit);
      merged.set(place, (merged.get(place) ?? 0) + chances[j]);
    });
    const least = Math.min(...merged.keys()), reach = Math.max(...merged.keys()) - least;
    for (let i = 0; i < times; i++) {
      const next = new Float64Array(found.length + reach);
      for (const [place, part] of merged) {
        for (let k = 0, to = place - least; k < found.length; k++, to++) next[to] += part * found[k];
      }
      found = next;
      first += least;
    }
  }
  return { unit, first, chances: found };
}

function logDeltaOfLattice({ unit, first, chances }, epsilon) {
  let sum = 0;
  chances.forEach((chance, k) => { sum += chance * -Math.expm1(Math.min(0, epsilon - unit * (first + k))); });
  return Math.log(Math.max(sum, 1e-320));
}

// The loss of discrete Gaussian noise: d (X + d/2) / s, without what is rarer than 1e-40.
function gaussianUse([s, d, times]) {
  const reach = Math.floor(Math.sqrt(2 * s * 92)), values = Array.from({ length: 2 * reach + 1 }, (_, k) => k - reach);
  const chances = values.map((x) => Math.exp(-x * x / (2 * s))), whole = chances.reduce((a, b) => a + b, 0);
  return [values.map((x) => d * (x + d / 2) / s), chances.map((chance) => chance / whole), times];
}

// A loss that is ε or -ε.
const pairUse = (epsilon, times) => [[epsilon, -epsilon], [1, Math.exp(-epsilon)].map((e) => e / (1 + Math.exp(-epsilon))), times];

// Where a rising or falling function of a number is 0, from one near it; what has no root has one far
// beyond those of budgets.
function rootOf(of, near, isRising) {
  const excess = (log) => of(Math.exp(log));
  let a = Math.log(near), fa = excess(a), step = 0.004;
  const way = (fa > 0) === isRising ? -1 : 1;
  let b = a + way * step, fb = excess(b);
  while (fa * fb > 0) {
    if (step > 40) return Math.exp(b);
    step *= 4;
    [a, fa, b] = [b, fb, b + way * step];
    fb = excess(b);
  }
  for (let i = 1; i < 60 && Math.abs(b - a) > 3e-6 && fb !== 0; i++) {
    const isHalved = i % 3 === 0, c = isHalved ? (a + b) / 2 : b - fb * (b - a) / (fb - fa), fc = excess(c);
    if (fc * fb < 0) [a, fa] = [b, fb]; else if (!isHalved) fa /= 2;
    [b, fb] = [c, fc];
  }
  return Math.exp(b);
}
