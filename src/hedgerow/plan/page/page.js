// The planning page: at each budget what counts would be worth, and what they would give away.

const { solver, points, rows } = facts;
const Z = facts.quantile, FEW = 100, LAST = points.values.length - 1;
const byId = (id) => document.getElementById(id);
const isCube = solver.kind === "cube", isFixed = solver.kind === "fixed";
const state = { place: points.own, division: 0, shares: null };

const symbol = points.kind === "Rho" ? "ρ" : "ε";
const significant = new Intl.NumberFormat(language, { maximumSignificantDigits: 4 });
const exactly = new Intl.NumberFormat(language, { maximumSignificantDigits: 15 });
const ceiled = (value) => significant.format(roundedUp(value, 4));
const budgetAt = (place) => `${symbol}\u00a0=\u00a0${points.texts[place].includes("/")
  ? ceiled(points.values[place]) : exactly.format(points.values[place])}`;

// "10⁻⁸", or the number as it is.
function powerOfTen(text) {
  const power = Math.log10(Number(text));
  const digits = [...String(Math.abs(Math.round(power)))].map((digit) => "⁰¹²³⁴⁵⁶⁷⁸⁹"[digit]).join("");
  return Math.abs(power - Math.round(power)) < 1e-9 ? `10⁻${digits}` : text;
}

// The division that is drawn: one computed beforehand, or somebody's own, in thousandths.
const divided = () => (state.division >= 0 ? points.divisions[state.division] : null);
const allocation = () => divided() ?? { shares: state.shares };
const halfWidth = (variance) => Z * Math.sqrt(variance);

// What a division is at each budget, as far as it was asked.
const seen = new Map();
function at(place) {
  if (seen.division !== state.division || seen.shares !== JSON.stringify(state.shares)) {
    seen.clear();
    Object.assign(seen, { division: state.division, shares: JSON.stringify(state.shares) });
  }
  if (!seen.has(place)) {
    const bought = boughtBy(solver, points, divided(), allocation().shares, place);
    seen.set(place, { ...bought, variances: variancesOf(solver, allocation(), bought.whole, place) });
  }
  return seen.get(place);
}

// Words of which a part stands out.
function emphasized(element, words, part) {
  const at = part ? words.lastIndexOf(part) : -1;
  if (at < 0) element.textContent = words;
  else element.replaceChildren(words.slice(0, at), make("b", {}, part), words.slice(at + part.length));
}

// A count with its interval, outwards to whole counts.
function about(count, half) {
  return half < 1e-6 ? { count, low: count, high: count, isExact: true }
    : { count, low: Math.max(0, Math.floor(count - half)), high: Math.ceil(count + half) };
}

// "● firm", the word that stands everywhere for how sure a count is.
const sureness = (one) => make("span", { class: `sure s${reliability(one)}` }, RELIABILITY[reliability(one)]);

// A count of a level as an office says it, without and with its interval.
const sized = (place, count) => say("sized", { level: rows[place].label, count: number.format(count), units: facts.units });
const reads = (place, count) =>
  say("reads", { sized: sized(place, count), interval: interval(about(count, halfWidth(at(state.place).variances[place]))) });

// The counts at the head of the page: each beside its interval, on a scale of twice its size.
const cards = facts.shown.map(([place, count]) => {
  const reading = make("p", { class: "reading" }), sure = make("p", {});
  const band = make("i", {});
  const strip = make("div", { class: "strip", "aria-hidden": "true" }, make("div", { class: "line" }, band, make("u", {})),
    make("span", {}, number.format(0)), make("span", {}, say("truly", { count: number.format(count) })), make("span", {}, number.format(2 * count)));
  byId("counts").append(make("div", {}, make("p", {}, isolated(sized(place, count))), reading, sure, strip));
  return { place, count, reading, sure, band };
});

function showCard({ place, count, reading, sure, band }, { variances }) {
  if (!Number.isFinite(variances[place])) { reading.textContent = "–"; sure.textContent = say("untold"); return; }
  const half = halfWidth(variances[place]), one = about(count, half);
  const ends = [count - half, count + half].map((end) => 50 * Math.min(2, Math.max(0, end / count)));
  reading.textContent = interval(one);
  sure.replaceChildren(sureness(one), " ", reliability(one) === NOISE ? say("beyond_half")
    : say("often_within", { part: say("percent", { number: short.format(roundedUp(100 * half / count, 2)) }) }));
  band.className = `s${reliability(one)}`;
  band.style.left = `${ends[0]}%`;
  band.style.width = `${ends[1] - ends[0]}%`;
}

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
      const one = lever(`${name}: ${label}`, () => allocation().shares[axis][level],
        (share) => { state.shares[axis] = moved(state.shares[axis], level, share); });
      levers.push(one);
      block.append(make("div", { class: "lever" }, make("span", {}, isolated(label)), one.input, one.output));
    });
    byId("levers").append(block);
    if (facts.axes.length > 1) byId("levers").classList.add("beside");
  });
}

function buildRow(row, place) {
  const share = solver.measurable.indexOf(place);
  const outcome = make("p", { class: "outcome" });
  const parts = [make("h3", {}, isolated(row.label), " ", make("small", {}, number.format(row.cells)))];
  if (!isCube && !isFixed && share >= 0) {
    const one = lever(row.label, () => allocation().shares[share],
      (wanted) => { state.shares = moved(state.shares, share, wanted); });
    levers.push(one);
    parts.push(make("div", { class: "share" }, one.input, one.output));
  } else if (!isCube && !isFixed) parts.push(make("small", {}, say(solver.public.includes(place) ? "public" : "repeated")));
  const element = make("div", { class: "row" }, ...parts, outcome);
  byId("rows").append(element);
  return { ...row, outcome, element };
}

// How many of an earlier table's counts would be mostly noise: of 1; null without one.
function noisePart({ sizes }, half) {
  if (!sizes) return null;
  let below = 0, all = 0;
  for (const [count, times] of sizes) { all += times; if (count < 2 * half) below += times; }
  return all ? below / all : null;
}

function showRow({ outcome, count, sizes }, variance) {
  if (!Number.isFinite(variance)) { outcome.textContent = say("untold"); return; }
  if (variance === 0) { outcome.textContent = say("exactly"); return; }
  const half = halfWidth(variance), one = about(count, half), part = noisePart({ sizes }, half);
  const below = number.format(Math.ceil(2 * half));
  outcome.replaceChildren(`${say("of", { count: number.format(count) })} `, make("b", {}, interval(one)), " ", sureness(one),
    ...(part === 0 ? [] : [" ", make("small", {}, part === null ? say("below", { count: below })
      : say("part", { part: percent(part), count: below }))]));
}

const drawn = rows.map(buildRow);
if (isCube || isFixed) byId("division").classList.add("plainly");

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

// What an attacker learns.
const CIRCLES = Array.from({ length: FEW }, (_, i) => make("circle", { cx: 10 + (i % 10) * 20, cy: 10 + Math.floor(i / 10) * 20, r: 7 }));
document.querySelector("#attack svg").append(...CIRCLES);

function showPrivacy(found) {
  const part = percent(found / 100);
  emphasized(byId("learn"), say("learn", { one: facts.one, found: part }), part);
  CIRCLES.forEach((circle, i) => circle.setAttribute("class", i < 5 ? "guessed" : i < found ? "found" : ""));
  byId("attack-words").textContent = say("attack", { found: short.format(found) });
}

const inWords = (text, isBound) => (isBound ? say("no_more", { value: text }) : text);

// The same in a statistician's terms.
function conditionOf({ most, isBound }) {
  const delta = powerOfTen(points.delta);
  if (points.kind === "Epsilon") return say("pure");
  if (points.kind === "EpsilonDelta") return say("in_epsilon", { delta, rho: inWords(ceiled(most), isBound) });
  const told = epsilonAt(solver, points, divided(), allocation().shares, state.place);
  return say("in_rho", { delta, epsilon: inWords(ceiled(told.epsilon), told.isBound) });
}

function showStatistics(bought) {
  byId("condition").textContent = conditionOf(bought);
  byId("chosen").textContent = (divided() ?? points).chosen;
  const value = points.values[state.place], { trials } = facts;
  const tried = trials && state.division === 0 ? trials.values.indexOf(value) : -1;
  byId("tried").hidden = tried < 0;
  const headings = [...byId("statistics").querySelectorAll("thead th")].map((heading) => heading.textContent);
  byId("errors").replaceChildren(...drawn.filter(({ element }) => !element.hidden).map(({ label, place }) => {
    const variance = bought.variances[place], trial = tried < 0 ? null : trials.errors[place][tried];
    const figures = [Math.sqrt(variance), Math.sqrt(2 * variance / Math.PI), halfWidth(variance)]
      .map((figure) => (Number.isFinite(figure) ? short.format(figure) : "–"));
    if (tried >= 0) figures.push(trial === null ? "–" : short.format(trial));
    return make("tr", {}, make("th", { scope: "row" }, isolated(label)),
      ...figures.map((figure, i) => make("td", { class: "n", "data-of": headings[i + 1] }, figure)));
  }));
}

// From the accuracy to the first step that keeps it.
function needed() {
  const place = Number(byId("level").value), count = Math.max(1, Number(byId("count").value) || 1);
  const within = Math.max(0.01, Number(byId("within").value) || 0.01) / 100, most = (count * within / Z) ** 2;
  let first = 0, end = LAST + 1;
  while (first < end) {
    const middle = (first + end) >> 1;
    if (at(middle).variances[place] <= most) end = middle; else first = middle + 1;
  }
  return first > LAST ? null : first;
}

function showNeeded() {
  const place = needed();
  byId("need").textContent = place === null ? say("more_than", { budget: budgetAt(LAST) }) : budgetAt(place);
  byId("use").disabled = place === null;
}

// The narrowest noise that is drawn, as a variance; where it is not known, the least variance of an estimate.
function narrowest(variances, whole) {
  if (isFixed) return Math.min(...variances.filter((variance) => variance > 0));
  const { shares } = allocation();
  const own = ownVariances(solver, isCube ? cuboidShares(solver, shares) : shares, whole);
  return Math.min(...own.filter((variance) => variance > 0));
}

// How near the division is to the least weighted squared error of any unbiased estimates, rounded down: not
// said where noise is so narrow that it is not like continuous noise.
function showEfficiency({ variances, whole }) {
  const { efficiency } = facts;
  const total = efficiency === null ? Infinity
    : efficiency.weights.reduce((sum, weight, i) => (weight > 0 ? sum + weight * variances[i] : sum), 0);
  byId("efficiency").hidden = !Number.isFinite(total) || narrowest(variances, whole) < 1;
  if (byId("efficiency").hidden) return;
  const tenths = Math.floor(1000 * Math.min(1, efficiency.least / (2 * whole * total)) + 1e-6);
  const tenth = (number) => percentOf.format(number / 10);
  byId("efficient").textContent = say("efficient", { efficiency: tenth(tenths), less: tenth(1000 - tenths) });
  byId("efficiency").querySelector("i").style.width = `${tenths / 10}%`;
}
const percentOf = new Intl.NumberFormat(language, { minimumFractionDigits: 1, maximumFractionDigits: 1 });

const DIVISIONS = {
  own: "division_own", equal: "division_equal", optimal: "division_optimal", fair: "division_fair",
};
const buttons = points.divisions.map(({ key, also }, i) => {
  const button = make("button", { type: "button" }, also.length ? say("division_also", { name: say(DIVISIONS[key]), also: say(DIVISIONS[also[0]]) }) : say(DIVISIONS[key]));
  button.addEventListener("click", () => { state.division = i; state.shares = null; draw(); });
  byId("presets").append(button);
  return button;
});

// The budget: each step of the slider, each press of a button is one of those computed beforehand.
const steps = [...document.querySelectorAll("[data-step]")].map((button) => ({ button, by: Number(button.dataset.step) }));
function showBudget(found) {
  const { place } = state, dial = byId("value"), [fine, count] = facts.shown[facts.shown.length - 1];
  dial.value = place;
  dial.style.setProperty("--at", `${100 * place / LAST}%`);
  byId("shown").textContent = budgetAt(place);
  const noticed = say("noticed", { found: percent(found / 100) });
  dial.setAttribute("aria-valuetext", `${budgetAt(place)}. ${reads(fine, count)}. ${noticed}`);
  for (const { button, by } of steps) button.setAttribute("aria-disabled", place + by < 0 || place + by > LAST);
  byId("dock-budget").textContent = budgetAt(place);
  byId("dock-sized").textContent = sized(fine, count);
  byId("dock-reads").textContent = interval(about(count, halfWidth(at(place).variances[fine])));
  byId("dock-noticed").textContent = noticed;
}

function moveTo(place) {
  state.place = Math.max(0, Math.min(LAST, place));
  draw();
}

function draw() {
  const bought = at(state.place);
  const found = foundOf(solver, points, divided(), allocation().shares, state.place, bought.most);
  showCriteria();
  for (const one of cards) showCard(one, bought);
  showBudget(found);
  showPrivacy(found);
  for (const one of levers) one.show();
  buttons.forEach((button, i) => button.setAttribute("aria-pressed", state.division === i));
  byId("own-division").textContent = state.division < 0 ? say("division_yours") : "";
  drawn.forEach((row) => { if (!row.element.hidden) showRow(row, bought.variances[row.place]); });
  showEfficiency(bought);
  if (byId("statistics").open) showStatistics(bought);
  showNeeded();
  showSigned(showLedger(bought));
}

byId("value").max = LAST;
facts.ticks.forEach((place) => {
  const mark = make("span", {}, exactly.format(points.values[place]));
  mark.style.left = `${100 * place / LAST}%`;
  byId("ticks").append(mark);
});
startCriteria();
byId("value").addEventListener("input", () => moveTo(Number(byId("value").value)));
for (const { button, by } of steps) {
  button.addEventListener("click", () => {
    moveTo(state.place + by);
    byId("told").textContent = byId("value").getAttribute("aria-valuetext");
  });
}
for (const id of ["level", "count", "within"]) byId(id).addEventListener("input", showNeeded);
byId("use").addEventListener("click", () => { moveTo(needed()); byId("value").focus(); });
byId("statistics").addEventListener("toggle", draw);
byId("print").addEventListener("click", () => print());
byId("copy").addEventListener("click", async () => {
  try {
    await navigator.clipboard.writeText(byId("lines").textContent);
    byId("copy").textContent = say("copied");
  } catch {
    getSelection().selectAllChildren(byId("lines"));
  }
});
draw();
