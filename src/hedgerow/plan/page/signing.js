// What is signed, and what it costs beside earlier releases.

// What is signed: the lines of the file, and the plan's hash where it was computed.
function linesOf() {
  const text = points.texts[state.place];
  const privacy = points.kind === "Rho" ? `rho = "${text}"`
    : points.kind === "Epsilon" ? `epsilon = "${text}"` : `epsilon = "${text}"\ndelta = "${points.delta}"`;
  const one = divided(), isOwn = state.place === points.own;
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

function showSigned(times) {
  const over = times !== null && times < 1;
  byId("signed").hidden = over;
  byId("lines").textContent = linesOf();
  const hash = divided() ? divided().hashes[state.place] : null;
  byId("hash").textContent = hash ? hash.match(/.{8}/g).join(" ") : "hedgerow plan FILE";
  byId("hash-words").textContent = hash ? say("hash_words") : say("hash_later");
  const delta = points.kind === "EpsilonDelta" ? say("at_delta", { delta: powerOfTen(points.delta) }) : "";
  const said = facts.shown.map(([place, count]) => reads(place, count)).join("; ");
  const sentence = say("summary", { budget: `${budgetAt(state.place)}${delta}`, reads: said, learn: byId("learn").textContent });
  byId("summary").textContent = over ? say("refused") : times === null ? sentence : `${sentence} ${say("again", { n: times })}`;
}

// The account: only where the page was made with one.
function showLedger(bought) {
  const { ledger } = facts;
  if (!ledger) return null;
  const cost = costOf(solver, points, ledger.symbol, allocation().shares, bought);
  const isKnown = divided()?.key === "own" || (symbol === ledger.symbol && points.kind !== "EpsilonDelta");
  const told = isKnown ? ledger.times[state.place] : null;
  const times = told ?? Math.max(0, Math.floor((ledger.cap - ledger.spent) / cost));
  const ofCap = (amount) => percent(roundedUp(amount / ledger.cap));
  byId("price").textContent = times < 1 ? say("refused")
    : `${say("price", { part: ofCap(cost), spent: ledger.spent ? ofCap(ledger.spent) : percent(0) })} ${say("again", { n: times })}`;
  byId("price").classList.toggle("refused", times < 1);
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
