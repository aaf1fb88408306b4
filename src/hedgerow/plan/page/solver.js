// The mean variances of a plan's estimates, for any shares and any budget: see solver.py.

// A share's precision is what it buys: s ρ / (p Δ²), or s ε / (p Δ); p is the part of all cuboids'
// worst costs that one unit can incur.
function precisions({ changes }, shares, whole) {
  const largest = changes.map((norms) => Math.max(...norms));
  const cases = Math.max(...changes.map((norms) => norms.length));
  let part = 0;
  for (let k = 0; k < cases; k++) {
    let sum = 0;
    shares.forEach((share, i) => {
      const norms = changes[i];
      sum += share * (norms.length === 1 ? norms[0] : norms[k]) / largest[i];
    });
    part = Math.max(part, sum);
  }
  return shares.map((share, i) => share * whole / (part * largest[i]));
}

const nominalVariance = ({ price }, precision) => price.variance / precision ** price.power;

// The true variance of discrete noise, between two of a table by a line in logarithms.
function trueVariance(solver, precision) {
  const { first, step, log_variances: table } = solver.noise;
  const at = (Math.log(precision) - first) / step;
  if (at <= 0) return nominalVariance(solver, precision);
  const i = Math.min(Math.floor(at), table.length - 2);
  return Math.exp(table[i] + (at - i) * (table[i + 1] - table[i]));
}

// For each row the variance of one noisy count: 0 where public, infinite where not measured.
function ownVariances(solver, shares, whole) {
  const own = new Array(solver.rows).fill(Infinity);
  for (const row of solver.public) own[row] = 0;
  precisions(solver, shares, whole).forEach((precision, i) => {
    if (precision > 0) own[solver.measurable[i]] = trueVariance(solver, precision);
  });
  return own;
}

// How each depth of a chain over some axes refines the one before; computed once.
function chainOf(axes, steps) {
  const at = axes.map(() => 0);
  const depths = [];
  for (let depth = 0; depth <= steps.length; depth++) {
    if (depth) at[steps[depth - 1][0]] = steps[depth - 1][1];
    const levels = axes.map((axis, a) => axis[at[a]]);
    let nodes = [1];
    for (const level of levels) {
      const outer = new Float64Array(nodes.length * level.nodes.length);
      nodes.forEach((n, i) => level.nodes.forEach((m, j) => { outer[i * level.nodes.length + j] = n * m; }));
      nodes = outer;
    }
    depths.push({ nodes: Float64Array.from(nodes), size: nodes.reduce((a, b) => a + b, 0) });
  }
  steps.forEach(([axis, level], t) => {
    const counts = axes.map((own, a) => {
      const done = steps.slice(0, t).filter(([other]) => other === a);
      return own[done.length ? done[done.length - 1][1] : 0].nodes.length;
    });
    const product = (part) => part.reduce((a, b) => a * b, 1);
    depths[t].below = {
      ...axes[axis][level - 1],
      lower: axes[axis][level].nodes.length,
      before: product(counts.slice(0, axis)),
      after: product(counts.slice(axis + 1)),
      single: axes[axis][level - 1].nodes.every((_n, i) => {
        const { start, times } = axes[axis][level - 1];
        let children = 0;
        for (let e = start[i]; e < start[i + 1]; e++) children += times[e];
        return children === 1;
      }),
    };
  });
  return depths;
}

// Visits each distinct parent with each of its distinct children: (parent, child, how many).
function pairs({ start, child, times, lower, before, after }, visit) {
  const upper = start.length - 1;
  for (let b = 0; b < before; b++) {
    for (let u = 0; u < upper; u++) {
      for (let e = start[u]; e < start[u + 1]; e++) {
        const from = (b * upper + u) * after, to = (b * lower + child[e]) * after;
        for (let a = 0; a < after; a++) visit(from + a, to + a, times[e]);
      }
    }
  }
}

// Least squares along a chain: mean variances, and the part of them that the true counts of one
// depth would explain (where `exact` is one).
function alongChain(chain, own, exact = null) {
  let last = chain.length - 1;
  while (last > 0 && own[last] === Infinity) last--;
  const up = [], family = [];
  up[last] = new Float64Array(chain[last].nodes.length).fill(own[last]);
  for (let t = last - 1; t >= 0; t--) {
    const sum = new Float64Array(chain[t].nodes.length), below = up[t + 1];
    pairs(chain[t].below, (parent, child, times) => { sum[parent] += times * below[child]; });
    family[t] = sum;
    up[t] = sum.map((s) => 1 / (1 / own[t] + 1 / s));
  }
  const means = [], explained = [];
  let final = up[0].slice(), told = exact === 0 ? final : null;
  const mean = (sums, t) => sums.reduce((a, b) => a + b, 0) / chain[t].size;
  for (let t = 0; ; t++) {
    means[t] = mean(final, t);
    if (exact !== null) explained[t] = t <= exact ? means[t] : mean(told, t);
    if (t === last) break;
    const here = final, above = told, sum = family[t], below = up[t + 1], nodes = chain[t].nodes;
    final = new Float64Array(chain[t + 1].nodes.length);
    if (above) told = new Float64Array(final.length);
    pairs(chain[t].below, (parent, child, times) => {
      if (!(sum[parent] > 0)) return;
      const q = below[child] / sum[parent];
      final[child] += times * (nodes[parent] * below[child] * (1 - q) + q * q * here[parent]);
      if (above) told[child] += times * q * q * above[parent];
    });
    if (t + 1 === exact) told = final;
  }
  for (let t = last + 1; t < chain.length; t++) {
    means[t] = chain[t - 1].below.single ? means[t - 1] : Infinity;
  }
  return { means, explained };
}

const productOf = (numbers) => numbers.reduce((a, b) => a * b, 1);

// What is measured of a cube: products of the shares of levels, but for what is public.
function cuboidShares(solver, byAxis) {
  const each = solver.measurable.map((row) =>
    productOf(solver.cuboids[row].map((level, axis) => byAxis[axis][level])));
  const total = each.reduce((a, b) => a + b, 0);
  return each.map((share) => share / total);
}

function cubeVariances(solver, byAxis, whole) {
  const shares = cuboidShares(solver, byAxis);
  const bought = precisions(solver, shares, whole);
  const leaves = bought[bought.length - 1];
  const { power } = solver.price;
  const own = byAxis.map((levels, axis) => levels.map((share, k) => {
    const unit = axis === 0 ? nominalVariance(solver, leaves) : 1;
    if (share > 0) return unit * (share / levels[levels.length - 1]) ** -power;
    return solver.known[axis][k] ? unit : Infinity;
  }));
  const of = (axis, variances) =>
    alongChain(solver.chains[axis], variances, solver.exact ? solver.exact[axis] : null);
  const found = own.map((variances, axis) => of(axis, variances));
  const open = solver.cuboids.map((cuboid) => productOf(cuboid.map((k, a) => found[a].means[k])));
  const nominal = open.map((variance, row) => (solver.exact === null ? variance
    : variance - productOf(solver.cuboids[row].map((k, a) => found[a].explained[k]))));
  const product = (i) => nominalVariance(solver, leaves) * (shares[shares.length - 1] / shares[i]) ** power;
  const ratios = trueRatios(solver, bought, product);
  if (ratios !== null) {
    const slopes = own.map((variances, axis) => logSlopes(variances, (v) => of(axis, v).means));
    solver.cuboids.forEach((cuboid, row) => {
      let ratio = 0, sum = 0;
      solver.measurable.forEach((measured, i) => {
        const weight = productOf(solver.cuboids[measured].map((j, a) => slopes[a][cuboid[a]][j]));
        if (weight > 0 && bought[i] > 0) { ratio += weight * ratios[i]; sum += weight; }
      });
      if (sum > 0) nominal[row] *= ratio / sum;
    });
  }
  for (const row of solver.public) nominal[row] = 0;
  return nominal.map((variance) => Math.max(variance, 0));
}

// True variances beside those of a product of wide noise, of which one unit changes each cuboid as
// much; null where they are the same.
function trueRatios(solver, bought, product) {
  const ratios = bought.map((p, i) => (p > 0 ? trueVariance(solver, p) / product(i) : 1));
  return ratios.every((ratio) => Math.abs(ratio - 1) < 1e-6) ? null : ratios;
}

// ∂ mean_k / ∂ ln v_j as a share of mean_k: what the noise of level j has in an estimate's variance,
// as estimates are least squares.
function logSlopes(variances, meansOf) {
  const step = 1e-5;
  const base = meansOf(variances);
  const slopes = base.map(() => []);
  variances.forEach((v, j) => {
    const moved = (factor) => meansOf(variances.map((w, i) => (i === j ? w * factor : w)));
    const [high, low] = v === Infinity ? [base, base] : [moved(1 + step), moved(1 - step)];
    base.forEach((mean, k) => { slopes[k][j] = Math.max(0, (high[k] - low[k]) / (2 * step * mean)); });
  });
  return slopes;
}

// Variances at some budgets, times budget^power, joined by lines in the logarithm of the budget.
function tabledVariances(solver, { wholes, variances }, whole) {
  const { power } = solver.price;
  const logs = wholes.map(Math.log), x = Math.log(whole);
  let i = 0;
  while (i < logs.length - 2 && x > logs[i + 1]) i++;
  const part = logs.length < 2 ? 0
    : Math.min(1, Math.max(0, (x - logs[i]) / (logs[i + 1] - logs[i])));
  return variances[i].map((first, row) => {
    if (first === null) return Infinity;
    const next = logs.length < 2 ? first : variances[i + 1][row];
    return (first + part * (next - first)) / whole ** power;
  });
}

// The mean variance of each row (records²): infinite where nothing tells of it.
function variancesOf(solver, allocation, whole) {
  if (solver.kind === "fixed") return tabledVariances(solver, allocation.table, whole);
  if (solver.kind === "cube") {
    solver.chains ??= solver.axes.map((axis) => chainOf([axis], axis.slice(1).map((_l, k) => [0, k + 1])));
    return cubeVariances(solver, allocation.shares, whole);
  }
  const own = ownVariances(solver, allocation.shares, whole);
  if (solver.kind === "combined") {
    solver.chain ??= chainOf(solver.axes, solver.steps);
    return alongChain(solver.chain, own).means;
  }
  return solver.matrix.map((row) => row.reduce((sum, m, s) => (m > 0 ? sum + m * own[s] : sum), 0));
}
