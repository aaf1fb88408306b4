// What ρ an (ε, δ) budget buys of discrete Gaussian noise, for any division: the exact accountant's
// integral (`hedgerow.privacy.accountant.contour`), to about a thousandth and without its proof.

// With L the privacy loss and K(t) = ln E[e^{tL}] its cumulant, for any c > 0
//   δ(ε) = E[(1 - e^{ε - L})₊] = 1/π ∫₀^∞ Re[e^{K(t) - tε} / (t (t + 1))] du,   t = c + iu.

// Where a lattice keeps the integrand from falling, it is cut off.
const ENOUGH = 35, LONGEST = 50, MOST_NODES = 4000;

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

// ln δ(ε) of a composition: pairs of a variance parameter and a move.
function logDelta(uses, epsilon) {
  const rho = uses.reduce((sum, [s, d]) => sum + d * d / (2 * s), 0);
  let c = Math.max(0.5, (epsilon / rho - 1) / 2);
  for (let i = 0; i < 60; i++) {
    const slope = rho * (1 + 2 * c) - epsilon - 1 / c - 1 / (c + 1);
    c = Math.max(c / 2, c - slope / (2 * rho + 1 / c ** 2 + 1 / (c + 1) ** 2));
  }
  const cumulants = uses.map(([s, d]) => cumulantOf(s, d));
  const step = 2 * Math.PI / Math.max(Math.sqrt(4 * ENOUGH * rho), ENOUGH / c);
  const width = 1 / Math.sqrt(2 * rho);
  const nodes = Math.min(MOST_NODES, Math.ceil(Math.max(9 * width, LONGEST * c * c / width, 3 * c) / step));
  const at = (u) => {
    let size = -c * epsilon, angle = -u * epsilon;
    for (const cumulant of cumulants) {
      const [more, turn] = cumulant(c, u);
      size += more;
      angle += turn;
      if (u > 0 && size - base < -ENOUGH) return 0;
    }
    if (u === 0) base = size;
    const re = c * (c + 1) - u * u, im = u * (2 * c + 1);
    return Math.exp(size - base) * (re * Math.cos(angle) + im * Math.sin(angle)) / (re * re + im * im);
  };
  let base = 0, sum = at(0) / 2;
  for (let i = 1; i <= nodes; i++) sum += at(i * step);
  return base + Math.log(sum * step / Math.PI);
}

// Profile.power: the least of δ(ε) + e^ε α over all ε, by golden sections. Every ε gives a bound.
const FALSE_ALARMS = 0.05;
function powerOf(uses) {
  const rho = uses.reduce((sum, [s, d]) => sum + d * d / (2 * s), 0);
  const most = rho + 4 * Math.sqrt(rho), part = (Math.sqrt(5) - 1) / 2;
  const at = (epsilon) => Math.exp(logDelta(uses, epsilon)) + FALSE_ALARMS * Math.exp(epsilon);
  let left = -most, right = Math.min(most, 3);
  let a = right - part * (right - left), b = left + part * (right - left), ofA = at(a), ofB = at(b);
  for (let i = 0; i < 20; i++) {
    if (ofA <= ofB) {
      [right, b, ofB] = [b, a, ofA];
      a = right - part * (right - left);
      ofA = at(a);
    } else {
      [left, a, ofA] = [a, b, ofB];
      b = left + part * (right - left);
      ofB = at(b);
    }
  }
  return Math.min(ofA, ofB);
}

// Where ln δ(ε) of this is that of δ: by secants in logarithms, from one near it.
function whereDeltaIs(delta, logDeltaAt, near) {
  const excess = (log) => logDeltaAt(Math.exp(log)) - Math.log(delta);
  let a = Math.log(near), b = a - 0.01, fa = excess(a), fb = excess(b);
  for (let i = 0; i < 8 && Math.abs(b - a) > 1e-5 && fa !== fb; i++) {
    [a, b, fa] = [b, b - Math.max(-0.3, Math.min(0.3, fb * (b - a) / (fb - fa))), fb];
    fb = excess(b);
  }
  return Math.exp(b);
}

const rhoOf = (uses, epsilon, delta, near) =>
  whereDeltaIs(delta, (rho) => logDelta(uses(rho), epsilon), near);
const epsilonOf = (uses, delta, near) =>
  whereDeltaIs(delta, (epsilon) => logDelta(uses, epsilon), near);
