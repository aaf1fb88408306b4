// The planning page: a budget, its division, and at once what the counts would be worth.

const { solver, points, rows } = facts;
const Z = facts.quantile, FEW = 100, LAST = points.values.length - 1;
const byId = (id) => document.getElementById(id);
const isCube = solver.kind === "cube", isFixed = solver.kind === "fixed";
const state = { value: points.values[points.own], division: 0, shares: null };

const STEPS = 240;
// Where the page cannot compute what a budget buys, there are those alone that were computed beforehand.
const snaps = solver.law === null && points.kind === "EpsilonDelta";
const logOf = (value) => Math.log(value / points.values[0]) / Math.log(points.values[LAST] / points.values[0]);
const stepOf = (value) => STEPS * logOf(value);
function valueAt(step) {
  const raw = points.values[0] * (points.values[LAST] / points.values[0]) ** (step / STEPS);
  const off = (value) => Math.abs(stepOf(value) - step);
  const near = [points.values[points.own], ...points.values].reduce((a, b) => (off(b) < off(a) ? b : a));
  if (snaps || Math.round(stepOf(near)) === step) return near;
  return Math.min(points.values[LAST], Math.max(points.values[0], Number(raw.toPrecision(3))));
}
const textOf = (value) => {
  const i = points.values.indexOf(value);
  return i < 0 ? String(value) : points.texts[i];
};
const readable = (value) => (textOf(value).includes("/") ? ceiled(value) : textOf(value));
const symbol = points.kind === "Rho" ? "ρ" : "ε";
const significant = new Intl.NumberFormat(language, { maximumSignificantDigits: 4 });
const ceiled = (value) => significant.format(Number((Math.ceil(value * 1e4 / 10 ** Math.ceil(Math.log10(value))) * 10 ** Math.ceil(Math.log10(value)) / 1e4).toPrecision(4)));

// "10⁻⁸", or the number as it is.
function powerOfTen(text) {
  const power = Math.log10(Number(text));
  const digits = [...String(Math.abs(Math.round(power)))].map((digit) => "⁰¹²³⁴⁵⁶⁷⁸⁹"[digit]).join("");
  return Math.abs(power - Math.round(power)) < 1e-9 ? `10⁻${digits}` : text;
}

// The division that is drawn: one computed beforehand, or somebody's own, in thousandths.
const divided = () => (state.division >= 0 ? points.divisions[state.division] : null);
const allocation = () => divided() ?? { shares: state.shares };
const boughtAt = (value) => boughtBy(solver, points, divided(), allocation().shares, value);
const halfWidth = (variance) => Z * Math.sqrt(variance);

// Words of which a part stands out.
function emphasized(element, words, part) {
  const at = part ? words.lastIndexOf(part) : -1;
  if (at < 0) element.textContent = words;
  else element.replaceChildren(words.slice(0, at), make("b", {}, part), words.slice(at + part.length));
}

// A count with its interval, outwards to whole counts.
function about(count, half) {
  return half < 1e-6 ? { count, low: count, high: count }
    : { count, low: Math.max(0, Math.floor(count - half)), high: Math.ceil(count + half) };
}

const svg = (tag, attributes, ...children) => {
  const made = document.createElementNS("http://www.w3.org/2000/svg", tag);
  for (const [name, value] of Object.entries(attributes)) made.setAttribute(name, value);
  made.append(...children);
  return made;
};

// Levers: one a depth of a chain, beside its outcome; for a cube one a level of each axis.
function lever(label, read, write) {
  const input = make("input", { type: "range", min: 1, max: 999, step: 1, "aria-label": say("share_of", { level: label }) });
  const output = make("output", {});
  input.addEventListener("input", () => { begin(); write(Number(input.value)); draw(); });
  const show = () => {
    const share = read();
    const text = share > 0 ? say("percent", { number: short.format(100 * share) }) : say("unmeasured");
    input.value = Math.round(1000 * share);
    input.style.setProperty("--at", `${100 * share}%`);
    input.setAttribute("aria-valuetext", text);
    output.textContent = text;
  };
  return { input, output, show };
}

// Somebody's own division begins with the one that is drawn.
function begin() {
  if (state.division < 0) return;
  const { shares } = divided();
  state.shares = isCube ? shares.map(inThousandths) : inThousandths(shares);
  state.division = -1;
}

// Shares as whole thousandths that sum to one; none that was given vanishes.
function inThousandths(shares) {
  const parts = shares.map((share) => (share > 0 ? Math.max(1, Math.round(1000 * share)) : 0));
  settle(parts, parts.indexOf(Math.max(...parts)));
  return parts.map((part) => part / 1000);
}

function settle(parts, place) {
  parts[place] += 1000 - parts.reduce((a, b) => a + b, 0);
}

// One share is moved, and the others give way in proportion.
function moved(shares, place, thousandths) {
  const others = shares.filter((share, i) => i !== place && share > 0).length;
  if (!others) return shares;
  const own = Math.min(1000 - others, Math.max(1, thousandths));
  const rest = 1000 - own, sum = shares.reduce((a, s, i) => (i === place ? a : a + s), 0);
  const parts = shares.map((share, i) =>
    (i === place ? own : share > 0 ? Math.max(1, Math.round(rest * share / sum)) : 0));
  let largest = place === 0 ? 1 : 0;
  parts.forEach((part, i) => { if (i !== place && part > parts[largest]) largest = i; });
  settle(parts, largest);
  return parts.map((part) => part / 1000);
}

const levers = [];
function buildLevers() {
  if (!isCube) return;
  facts.axes.forEach(({ name, levels }, axis) => {
    const block = make("div", { class: "axis" }, make("h3", {}, isolated(name)));
    levels.forEach((label, level) => {
      const one = lever(label, () => allocation().shares[axis][level],
        (share) => { state.shares[axis] = moved(state.shares[axis], level, share); });
      levers.push(one);
      block.append(make("div", { class: "lever" }, make("span", {}, isolated(label)), one.input, one.output));
    });
    byId("levers").append(block);
    if (facts.axes.length > 1) byId("levers").classList.add("beside");
  });
}

const largestCount = Math.max(1e7, ...rows.flatMap(({ sizes }) => (sizes || []).map(([count]) => count)));
const across = (count) => 100 * Math.log10(Math.max(1, Math.min(count, largestCount))) / Math.log10(largestCount);

// The hills of an earlier public table's counts, on the ruler's scale.
function hills(sizes) {
  const most = Math.max(...sizes.map(([, times]) => times));
  const path = sizes.map(([count, times], i) => `${i ? "L" : `M${across(count)} 22L`}${across(count)} ${22 - 20 * times / most}`).join("");
  return svg("svg", { viewBox: "0 0 100 22", preserveAspectRatio: "none", "aria-hidden": "true" },
    svg("path", { d: `${path}L${across(sizes[sizes.length - 1][0])} 22Z` }));
}

function buildRow(row, place) {
  const share = solver.measurable.indexOf(place);
  const outcome = make("p", { class: "outcome" });
  const bands = ["noise", "rough", "firm"].map((name) => make("span", { class: name }));
  const scale = make("div", { class: "scale" });
  for (const count of [1, 100, 1e4, 1e6]) {
    const mark = make("span", {}, compact.format(count));
    mark.style.left = `${across(count)}%`;
    scale.append(mark);
  }
  const ruler = make("div", { class: "ruler", "aria-hidden": "true" }, row.sizes ? hills(row.sizes) : null,
    make("div", { class: "bands" }, ...bands), scale);
  const parts = [make("div", {}, make("h3", {}, isolated(row.label)),
    make("small", {}, say("cells", { n: row.cells })))];
  if (!isCube && !isFixed && share >= 0) {
    const one = lever(row.label, () => allocation().shares[share],
      (wanted) => { state.shares = moved(state.shares, share, wanted); });
    levers.push(one);
    parts.push(make("div", { class: "share" }, one.input, one.output));
  } else if (!isCube && !isFixed) parts.push(make("small", {}, say(solver.public.includes(place) ? "public" : "repeated")));
  parts.push(make("div", { class: "said" }, outcome, ruler));
  const element = make("div", { class: "row" }, ...parts);
  byId("rows").append(element);
  return { ...row, outcome, bands, element };
}

// How many of an earlier table's counts would be mostly noise: of 1; null without one.
function noisePart({ sizes }, half) {
  if (!sizes) return null;
  let below = 0, all = 0;
  for (const [count, times] of sizes) { all += times; if (count < 2 * half) below += times; }
  return all ? below / all : null;
}

// The mean error of trial releases of an earlier table, between the budgets that were tried.
function trialOf(place) {
  const { trials } = facts;
  if (!trials || state.division !== 0) return null;
  const errors = trials.errors[place], { values } = trials;
  if (errors.some((error) => !(error > 0))) return null;
  if (state.value < values[0] || state.value > values[values.length - 1]) return null;
  return between(values, errors, state.value);
}

function showRow(row, variance) {
  if (!Number.isFinite(variance)) { row.outcome.textContent = say("untold"); return; }
  const half = halfWidth(variance), words = [];
  if (variance === 0) { row.outcome.textContent = say("exactly"); setBands(row, 0); return; }
  row.examples.forEach((count, i) => {
    const seen = about(count, half);
    words.push(make("span", {}, `${i ? " " : ""}${say(i ? "of" : "first", { count: number.format(count) })} `), make("b", {}, interval(seen)));
    if (reliability(seen) === NOISE) words.push(" ", make("span", { class: "bad" }, say("noise")));
    words.push(i < row.examples.length - 1 ? ";" : ".");
  });
  const part = noisePart(row, half);
  const rest = [say("off", { error: short.format(Math.sqrt(2 * variance / Math.PI)) }), " ",
    part === 0 ? "" : part === null ? say("below", { count: number.format(Math.ceil(2 * half)) })
      : say("part", { part: percent(part), count: number.format(Math.ceil(2 * half)) })];
  const trial = trialOf(row.place);
  if (trial !== null) rest.push(" ", say("trial", { error: short.format(trial) }));
  row.outcome.replaceChildren(...words, make("small", {}, rest.join("")));
  setBands(row, half);
}

function setBands(row, half) {
  const ends = [across(2 * half), across(10 * half), 100];
  row.bands.forEach((band, i) => { band.style.width = `${ends[i] - (i ? ends[i - 1] : 0)}%`; });
}

const drawn = rows.map(buildRow);
if (isCube || isFixed) byId("rows").classList.add("plainly");

// Of many rows the first and the finest are shown, until all are asked for.
const FIRST_ROWS = 12;
const left = drawn.filter((row, i) => i >= FIRST_ROWS && row.place !== facts.last);
if (left.length > 2) {
  left.forEach(({ element }) => { element.hidden = true; });
  const more = make("button", { type: "button", class: "more" }, say("all_rows", { n: drawn.length }));
  more.addEventListener("click", () => {
    left.forEach(({ element }) => { element.hidden = false; });
    more.remove();
    draw();
    left[0].element.scrollIntoView({ block: "nearest" });
  });
  byId("rows").after(more);
}
buildLevers();

// Budget.
const CIRCLES = Array.from({ length: FEW }, (_, i) => svg("circle", { cx: 10 + (i % 10) * 20, cy: 10 + Math.floor(i / 10) * 20, r: 7 }));
document.querySelector("#attack svg").append(...CIRCLES);

function showBudget({ most, isBound }) {
  const { value } = state, found = foundOf(solver, points, divided(), allocation().shares, value, most);
  byId("value").value = stepOf(value);
  byId("value").style.setProperty("--at", `${100 * logOf(value)}%`);
  byId("shown").textContent = `${symbol} = ${readable(value)}`;
  const part = percent(found / 100), learnt = say("learn", { unit: facts.unit, found: part });
  emphasized(byId("learn"), learnt, part);
  byId("value").setAttribute("aria-valuetext", `${symbol} = ${readable(value)}. ${learnt}`);
  const delta = powerOfTen(points.delta);
  byId("condition").textContent = points.kind === "Epsilon" ? say("pure")
    : points.kind === "Rho" ? say("in_rho", { delta, epsilon: epsilonInWords(value) })
      : say("in_epsilon", { delta, rho: inWords(ceiled(most), isBound) });
  CIRCLES.forEach((circle, i) => circle.setAttribute("class", i < 5 ? "guessed" : i < found ? "found" : ""));
  byId("attack-words").textContent = say("attack", { found: short.format(found) });
}

const inWords = (text, isBound) => (isBound ? say("at_most", { value: text }) : text);
function epsilonInWords(value) {
  const { epsilon, isBound } = epsilonAt(solver, points, divided(), allocation().shares, value);
  return inWords(ceiled(epsilon), isBound);
}

function showCurve(variances) {
  const line = lineOf(points, divided(), state.value);
  const box = byId("curve"), width = Math.max(300, box.clientWidth), narrow = width < 640;
  const height = narrow ? 300 : 360, left = 46, right = narrow ? 12 : 230, top = 12, bottom = 44;
  const chosen = facts.lines.filter(([place]) => Number.isFinite(variances[place]) && variances[place] > 0);
  const x = (value) => left + (width - left - right) * logOf(value);
  const partAt = ([place, count], value) =>
    halfWidth(variances[place] * (line / lineOf(points, divided(), value)) ** solver.price.power) / count;
  const least = Math.min(0.005, ...chosen.map((one) => partAt(one, points.values[LAST]))) / 1.5;
  const y = (part) => top + (height - top - bottom) * Math.log(2 / Math.min(2, Math.max(least, part))) / Math.log(2 / least);
  const parts = [svg("rect", { class: "noise-zone", x: left, width: width - left - right, y: top, height: y(0.5) - top, fill: "url(#hatch)" })];
  parts.unshift(svg("defs", {}, svg("pattern", { id: "hatch", width: 7, height: 7, patternUnits: "userSpaceOnUse", patternTransform: "rotate(45)" },
    svg("rect", { class: "hatch", width: 1.2, height: 7 }))));
  parts.push(svg("text", { x: width - right - 8, y: top + 16, "text-anchor": "end", class: "in-zone" }, say("noise")));
  for (const part of [1, 0.1, 0.01, 0.001, 1e-4, 1e-5, 1e-6].filter((one) => one > least)) {
    parts.push(svg("line", { class: "grid-line", x1: left, x2: width - right, y1: y(part), y2: y(part) }),
      svg("text", { x: left - 6, y: y(part) + 4, "text-anchor": "end" }, percent(part)));
  }
  facts.ticks.forEach((value) => parts.push(svg("line", { class: "axis-line", x1: x(value), x2: x(value), y1: height - bottom, y2: height - bottom + 5 }),
    svg("text", { x: x(value), y: height - bottom + 19, "text-anchor": "middle" }, readable(value))));
  parts.push(svg("line", { class: "axis-line", x1: left, x2: width - right, y1: height - bottom, y2: height - bottom }),
    svg("text", { x: left, y: height - 5 }, say("more_private")),
    svg("text", { x: width - right, y: height - 5, "text-anchor": "end" }, say("more_exact")),
    svg("line", { class: "now", x1: x(state.value), x2: x(state.value), y1: top, y2: height - bottom }));
  const sameLevel = new Set(chosen.map(([place]) => place)).size === 1;
  const labels = chosen.map(([place, count], k) => {
    const at = (value) => partAt([place, count], value);
    const d = points.values.map((value, i) => `${i ? "L" : "M"}${x(value).toFixed(1)} ${y(at(value)).toFixed(1)}`).join("");
    parts.push(svg("path", { d, class: `c${k}` }), svg("circle", { cx: x(state.value), cy: y(at(state.value)), r: 5, class: `c${k}` }));
    const now = at(state.value);
    return { k, y: y(at(points.values[LAST])), name: sameLevel ? say("count_of", { count: number.format(count) })
      : say("of_level", { level: rows[place].label, count: number.format(count) }),
      now: now > 1 ? say("noise_alone") : say("within", { part: percent(now) }) };
  }).sort((a, b) => a.y - b.y);
  labels.forEach((one, i) => { if (i) one.y = Math.max(one.y, labels[i - 1].y + 36); });
  const over = labels.length ? Math.max(0, labels[labels.length - 1].y - (height - bottom - 10)) : 0;
  if (!narrow) for (const one of labels) {
    parts.push(svg("line", { class: `c${one.k}`, x1: width - right + 6, x2: width - right + 28, y1: one.y - over - 4, y2: one.y - over - 4, "stroke-width": 2.4 }),
      svg("text", { class: `name n${one.k}`, x: width - right + 34, y: one.y - over }, cut(one.name, 27)),
      svg("text", { x: width - right + 34, y: one.y - over + 16 }, one.now));
  }
  const all = labels.map((one) => `${one.name}: ${one.now}`).join("; ");
  const picture = svg("svg", { viewBox: `0 0 ${width} ${height}`, role: "img", "aria-label": all }, ...parts);
  box.replaceChildren(picture, ...(narrow ? labels.map((one) => make("p", { class: "note" }, `${one.name}: ${one.now}`)) : []));
}

const cut = (words, most) => (words.length > most ? `${words.slice(0, most - 1)}…` : words);

// From the accuracy to the least budget.
function needed() {
  const place = Number(byId("level").value), count = Math.max(1, Number(byId("count").value) || 1);
  const within = Math.max(0.01, Number(byId("within").value) || 0.01) / 100, most = (count * within / Z) ** 2;
  const scale = boughtAt(state.value).whole / lineOf(points, divided(), state.value);
  const errsAt = (whole) => variancesOf(solver, allocation(), whole)[place];
  const near = (value) => errsAt(scale * lineOf(points, divided(), value)) <= most;
  if (snaps) return points.values.find((value) => errsAt(boughtAt(value).whole) <= most) ?? null;
  let low = points.values[0], high = points.values[LAST];
  if (near(low)) return low;
  for (let i = 0; i < 24; i++) {
    const middle = Math.sqrt(low * high);
    if (near(middle)) high = middle; else low = middle;
  }
  let value = roundedUp(0.998 * high);
  for (let i = 0; i < 12 && value <= points.values[LAST]; i++) {
    if (errsAt(boughtAt(value).whole) <= most) return value;
    value = roundedUp(1.0011 * value);
  }
  return null;
}

function showNeeded() {
  const value = needed();
  byId("need").textContent = value === null ? say("more_than", { symbol, value: readable(points.values[LAST]) }) : `${symbol} = ${readable(value)}`;
  byId("use").disabled = value === null;
}

// What is signed: the lines of the file, and the plan's hash where it was computed.
function linesOf() {
  const privacy = points.kind === "Rho" ? `rho = "${textOf(state.value)}"`
    : points.kind === "Epsilon" ? `epsilon = "${textOf(state.value)}"`
      : `epsilon = "${textOf(state.value)}"\ndelta = "${points.delta}"`;
  const one = divided();
  const isOwn = state.value === points.values[points.own];
  if (one && one.lines === null && (one.keeps || isOwn)) return `[privacy]  # ${say("stay")}\n${privacy}\n\n# ${say("unchanged")}`;
  const own = one ? one.lines ?? givenLines(one) : ownLines();
  return `[privacy]  # ${say("stay")}\n${privacy}\n\n[allocation]  # ${say("alone")}\n${own}`;
}
const quoted = (shares) => `[${shares.map((share) => `"${share}"`).join(", ")}]`;
const givenLines = (one) => `method = "shares"\nshares = ${facts.form === "list" ? quoted(one.listed)
  : `{${facts.named.map((name, i) => `${JSON.stringify(name)} = "${one.named[i]}"`).join(", ")}}`}`;
function ownLines() {
  const parts = (shares) => quoted(shares.map((share) => `${Math.round(1000 * share)}/1000`));
  return `method = "shares"\nshares = ${isCube
    ? `{${facts.axes.map(({ key }, axis) => `${JSON.stringify(key)} = ${parts(state.shares[axis])}`).join(", ")}}`
    : parts(state.shares)}`;
}

function showSigned(variances, times) {
  const over = times !== null && times < 1;
  byId("signed").hidden = over;
  byId("lines").textContent = linesOf();
  const place = points.values.indexOf(state.value);
  const hash = divided() && place >= 0 ? divided().hashes[place] : null;
  byId("hash").textContent = hash ? hash.match(/.{8}/g).join(" ") : "hedgerow plan FILE";
  byId("hash-words").textContent = hash ? say("hash_words") : say("hash_later");
  const { last } = facts, { label, examples } = rows[last];
  const seen = about(examples[0], halfWidth(variances[last]));
  const said = examples.map((count) => say("reads", { count: number.format(count), interval: interval(about(count, halfWidth(variances[last]))) }));
  const delta = points.kind === "EpsilonDelta" ? say("at_delta", { delta: powerOfTen(points.delta) }) : "";
  const sentence = say("summary", { budget: `${symbol} = ${readable(state.value)}${delta}`, level: label, reads: said.join(say("and")) });
  byId("summary").textContent = over ? say("refused") : times === null ? sentence : `${sentence} ${say("again", { n: times })}`;
  byId("dock").replaceChildren(make("span", {}, say("budget"), make("b", {}, `${symbol} = ${readable(state.value)}`)),
    make("span", {}, say("of_level", { level: label, count: number.format(examples[0]) }), make("b", {}, interval(seen))),
    ...(times === null ? [] : [make("span", {}, say("left_for"), make("b", {}, over ? say("none_left") : say("so_many", { n: times })))]));
}

// The account: only where the page was made with one.
function showLedger(bought) {
  const { ledger } = facts;
  if (!ledger) return null;
  const cost = costOf(solver, points, ledger.symbol, allocation().shares, bought);
  const isKnown = divided()?.key === "own" || (symbol === ledger.symbol && points.kind !== "EpsilonDelta");
  const told = isKnown ? ledger.times[points.values.indexOf(state.value)] : null;
  const times = told ?? Math.max(0, Math.floor((ledger.cap - ledger.spent) / cost));
  byId("times").textContent = times < 1 ? say("refused") : say("again", { n: times });
  byId("times").classList.toggle("refused", times < 1);
  const part = (amount) => `${Math.max(0, Math.min(100, 100 * amount / ledger.cap))}%`;
  const before = make("span", { class: "before" }), own = make("span", { class: times < 1 ? "over" : "this" });
  before.style.width = part(ledger.spent);
  own.style.width = part(cost);
  const next = Array.from({ length: Math.min(60, Math.max(0, times - 1)) }, () => {
    const one = make("span", { class: "next" });
    one.style.width = part(cost);
    return one;
  });
  byId("spent").replaceChildren(before, own, ...next);
  const words = [[say("spent"), significant.format(ledger.spent)], [say("this_one"), inWords(ceiled(cost), bought.isBound)],
    [say("left"), significant.format(ledger.cap - ledger.spent - cost)], [say("cap"), significant.format(ledger.cap)]]
    .map(([name, amount]) => [name, `${ledger.symbol} = ${amount}`]);
  byId("spent").setAttribute("aria-label", words.map((pair) => pair.join(": ")).join("; "));
  byId("account").replaceChildren(...words.map(([name, amount]) => make("div", {}, make("dt", {}, name), make("dd", {}, amount))));
  return times;
}

// The narrowest noise that is drawn, as a variance; where it is not known, the least variance of an estimate.
function narrowest(variances, whole) {
  if (isFixed) return Math.min(...variances.filter((variance) => variance > 0));
  const { shares } = allocation();
  const own = ownVariances(solver, isCube ? cuboidShares(solver, shares) : shares, whole);
  return Math.min(...own.filter((variance) => variance > 0));
}

// How near the division is to the least weighted squared error of any unbiased estimates: not said where
// noise is so narrow that it is not like continuous noise.
function showEfficiency(variances, whole) {
  const { efficiency } = facts;
  const total = efficiency === null ? Infinity
    : efficiency.weights.reduce((sum, weight, i) => (weight > 0 ? sum + weight * variances[i] : sum), 0);
  byId("efficiency").hidden = !Number.isFinite(total) || narrowest(variances, whole) < 1;
  if (byId("efficiency").hidden) return;
  const found = Math.min(1, efficiency.least / (2 * whole * total));
  byId("efficiency").textContent = say("efficient", { efficiency: (Math.floor(1000 * found + 0.5) / 1000).toLocaleString(language, { minimumFractionDigits: 3 }) });
}

const DIVISIONS = {
  own: "division_own", equal: "division_equal", optimal: "division_optimal", fair: "division_fair",
};
const buttons = points.divisions.map(({ key, also }, i) => {
  const button = make("button", { type: "button" }, also.length ? say("division_also", { name: say(DIVISIONS[key]), also: say(DIVISIONS[also[0]]) }) : say(DIVISIONS[key]));
  button.addEventListener("click", () => { state.division = i; state.shares = null; draw(); });
  byId("presets").append(button);
  return button;
});

function draw() {
  const bought = boughtAt(state.value);
  const variances = variancesOf(solver, allocation(), bought.whole);
  showBudget(bought);
  for (const one of levers) one.show();
  buttons.forEach((button, i) => button.setAttribute("aria-pressed", state.division === i));
  byId("own-division").textContent = state.division < 0 ? say("division_yours") : "";
  byId("chosen").textContent = (divided() ?? points).chosen;
  drawn.forEach((row) => { if (!row.element.hidden) showRow(row, variances[row.place]); });
  showEfficiency(variances, bought.whole);
  showCurve(variances);
  showNeeded();
  showSigned(variances, showLedger(bought));
}

facts.ticks.forEach((value) => {
  const mark = make("span", {}, textOf(value));
  mark.style.left = `${100 * logOf(value)}%`;
  byId("ticks").append(mark);
});
byId("value").addEventListener("input", () => { state.value = valueAt(Number(byId("value").value)); draw(); });
for (const id of ["level", "count", "within"]) byId(id).addEventListener("input", showNeeded);
byId("use").addEventListener("click", () => { state.value = needed(); draw(); byId("learn").scrollIntoView({ block: "nearest" }); });
byId("print").addEventListener("click", () => print());
byId("copy").addEventListener("click", async () => {
  try {
    await navigator.clipboard.writeText(byId("lines").textContent);
    byId("copy").textContent = say("copied");
  } catch {
    getSelection().selectAllChildren(byId("lines"));
  }
});
for (const event of ["resize", "beforeprint", "afterprint"]) addEventListener(event, draw);
draw();
