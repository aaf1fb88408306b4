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

// The true variance of discrete noise: by a parabola in logarithms through the nearest of a table.
function trueVariance(solver, precision) {
  const { first, step, log_variances: table } = solver.noise;
  const at = (Math.log(precision) - first) / step;
  if (at <= 0) return nominalVariance(solver, precision);
  const i = Math.min(Math.max(Math.round(at), 1), table.length - 2), part = at - i;
  const [before, here, after] = table.slice(i - 1, i + 2);
  return Math.exp(here + part * ((after - before) / 2 + part * (after - 2 * here + before) / 2));
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

// What each distinct node's own subtree says of it has the variance u, and its children's sum that
// of S: down to the last depth that is measured, below which S is infinite.
function fromBelow(chain, own) {
  let last = chain.length - 1;
  while (last > 0 && own[last] === Infinity) last--;
  const up = [], family = [];
  family[last] = new Float64Array(chain[last].nodes.length).fill(Infinity);
  up[last] = family[last].map(() => own[last]);
  for (let t = last - 1; t >= 0; t--) {
    family[t] = sumsOfFamilies(chain[t], up[t + 1]);
    up[t] = family[t].map((s) => 1 / (1 / own[t] + 1 / s));
  }
  return { up, family, last };
}

function sumsOfFamilies({ nodes, below }, ofChildren) {
  const sums = new Float64Array(nodes.length);
  pairs(below, (parent, child, times) => { sums[parent] += times * ofChildren[child]; });
  return sums;
}

// Of sums over the nodes that are alike, one each distinct node of a depth.
const meanOf = (sums, { size }) => sums.reduce((a, b) => a + b, 0) / size;

// Mean variances by least squares along a chain.
function alongChain(chain, own) {
  const { up, family, last } = fromBelow(chain, own);
  let final = up[0].slice();
  const means = [meanOf(final, chain[0])];
  for (let t = 0; t < last; t++) {
    const here = final, sum = family[t], below = up[t + 1], nodes = chain[t].nodes;
    final = new Float64Array(chain[t + 1].nodes.length);
    pairs(chain[t].below, (parent, child, times) => {
      if (!(sum[parent] > 0)) return;
      const q = below[child] / sum[parent];
      final[child] += times * (nodes[parent] * below[child] * (1 - q) + q * q * here[parent]);
    });
    means.push(meanOf(final, chain[t + 1]));
  }
  for (let t = last + 1; t < chain.length; t++) {
    means[t] = chain[t - 1].below.single ? means[t - 1] : Infinity;
  }
  return means;
}

// Along one axis of a cube the means of τ, as AxisSquares.coefficients has it, by the
// level of an estimate and by that of the noise: of estimates, of these beside what the counts of
// level `exact` explain of them, and of that alone.
function meanCoefficients(chain, own, exact) {
  const { up, family, last } = fromBelow(chain, own);
  const means = [[], [], []].map(() => own.map(() => []));
  own.forEach((variance, level) => {
    const z = [], sums = [];
    for (let t = last; t >= 0; t--) {
      sums[t] = t < last ? sumsOfFamilies(chain[t], z[t + 1]) : new Float64Array(up[t].length);
      z[t] = sums[t].map((sum, i) => (t === level ? (up[t][i] / variance) ** 2 : 0)
        + (up[t][i] / family[t][i]) ** 2 * sum);
    }
    // Sums over nodes that are alike, as all is linear in them: of each τ, of the coefficient of a
    // node's z in its own y, and of that in what the exact counts explain it by.
    const first = Float64Array.of(1);
    let here = { whole: z[0], crossed: z[0], told: z[0], within: first, reached: first };
    for (let t = 0; ; t++) {
      [here.whole, here.crossed, here.told].forEach((one, i) => {
        means[i][t][level] = meanOf(one, chain[t]);
      });
      if (t === last) return;
      const above = here, nodes = chain[t].nodes;
      here = {};
      for (const name of Object.keys(above)) here[name] = new Float64Array(up[t + 1].length);
      pairs(chain[t].below, (p, c, times) => {
        const q = up[t + 1][c] / family[t][p], h = up[t][p] / family[t][p], sum = sums[t][p];
        const lost = nodes[p] - h * above.within[p], reached = h * above.reached[p];
        here.whole[c] += times * (z[t + 1][c] * (nodes[p] - 2 * q * lost)
          + q * q * (above.whole[p] + (2 * lost - nodes[p]) * sum));
        here.within[c] += times * (nodes[p] - q * lost);
        here.crossed[c] += times * q * (reached * (z[t + 1][c] - q * sum) + q * above.crossed[p]);
        here.told[c] += times * q * q * above.told[p];
        here.reached[c] += times * q * reached;
      });
      if (t < exact) {
        here.crossed = here.told = here.whole;
        here.reached = here.within;
      }
    }
  });
  return means;
}

const productOf = (numbers) => numbers.reduce((a, b) => a * b, 1);

// What is measured of a cube: products of the shares of levels, but for what is public.
function cuboidShares(solver, byAxis) {
  const each = solver.measurable.map((row) =>
    productOf(solver.cuboids[row].map((level, axis) => byAxis[axis][level])));
  const total = each.reduce((a, b) => a + b, 0);
  return each.map((share) => share / total);
}

// By the sum over the cuboids' noise of hedgerow.estimate.cube.variances, whatever noise it is.
function cubeVariances(solver, byAxis, whole) {
  const weights = byAxis.map((levels) =>
    levels.map((share) => (share / levels[levels.length - 1]) ** -solver.price.power));
  const at = (cuboid) => cuboid.reduce((place, level, a) => place * weights[a].length + level, 0);
  const noise = new Float64Array(productOf(weights.map((levels) => levels.length)));
  const own = ownVariances(solver, cuboidShares(solver, byAxis), whole);
  own.forEach((v, row) => { if (v < Infinity) noise[at(solver.cuboids[row])] = v; });
  const parts = weights.map((levels, a) =>
    meanCoefficients(solver.chains[a], levels, solver.exact ? solver.exact[a] : 0));
  const signs = solver.exact ? [1, -2, 1] : [1];
  const terms = signs.map((_s, i) => parts.reduce((table, means) => turned(table, means[i]), noise));
  return solver.cuboids.map((cuboid) =>
    Math.max(0, signs.reduce((sum, sign, i) => sum + sign * terms[i][at(cuboid)], 0)));
}

// A table whose first axis goes through a matrix, and becomes the last.
function turned(table, matrix) {
  const rest = table.length / matrix.length;
  return table.map((_v, place) => matrix[place % matrix.length].reduce(
    (sum, weight, j) => sum + weight * table[j * rest + Math.floor(place / matrix.length)], 0));
}

// The mean variance of each row (records²) at a budget: infinite where nothing tells of it.
function variancesOf(solver, allocation, whole, place) {
  if (solver.kind === "fixed") {
    return allocation.errors[place].map((error) => (error === null ? Infinity : error ** 2));
  }
  if (solver.kind === "cube") {
    solver.chains ??= solver.axes.map((axis) => chainOf([axis], axis.slice(1).map((_l, k) => [0, k + 1])));
    return cubeVariances(solver, allocation.shares, whole);
  }
  const own = ownVariances(solver, allocation.shares, whole);
  if (solver.kind === "combined") {
    solver.chain ??= chainOf(solver.axes, solver.steps);
    return alongChain(solver.chain, own);
  }
  return solver.matrix.map((row) => row.reduce((sum, m, s) => (m > 0 ? sum + m * own[s] : sum), 0));
}
