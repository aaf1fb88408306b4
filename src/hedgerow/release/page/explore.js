function crumbs(path, along) {
  const entries = path.map((i, t) => {
    const [axis] = t ? steps[t - 1] : [0];
    const own = t ? label(axis, along[t][axis].level, along[t][axis].code) : say("everything");
    const words = t && axes.length > 1 ? `${axes[axis].name} ${own}` : own;
    const here = t === path.length - 1;
    return make("li", {}, here ? make("span", { "aria-current": "page" }, isolated(words))
      : make("button", { type: "button", click: () => go(t, i, 2, "back") }, isolated(words)));
  });
  return make("nav", { "aria-label": say("where") }, make("ol", { class: "crumbs" }, ...entries));
}

function here(t, i, codes) {
  const value = valueOf(t, i);
  const exact = value.low === value.high && value.low === value.count;
  return make("div", { class: "here", role: "status" },
    make("h3", { tabindex: -1 }, isolated(nameOf(codes))),
    make("strong", {}, number.format(value.count)),
    make("span", {}, exact ? say("here_exact", { unit }) : say("here_sure", { unit, interval: interval(value) })),
    isContradicted(value) ? make("span", { class: "doubt" }, `≠ ${contradiction(value)}`) : null);
}

function views(t, i, mode) {
  const names = [[2, depths[t + 2]], [1, depths[t + 1]]].map(([steps, name]) => make("button", {
    type: "button", "aria-pressed": String(steps === mode), click: () => go(t, i, steps, "view"),
  }, isolated(name)));
  return make("div", { class: "tools", role: "group", "aria-label": say("what_to_show") }, say("show"), make("div", {}, ...names));
}

// The names of the first and the last range below a node.
function outermost(t, codes, possible) {
  const [axis, k] = steps[t], first = level(axis, k).start[codes[axis].code];
  return [first, first + possible - 1].map((code) => label(axis, k, code));
}

function draw(t, i, wished, every = false) {
  const path = lineage(t, i), along = codesAlong(path), codes = along[t];
  const parts = [...(t ? [crumbs(path, along)] : []), here(t, i, codes), surenessChoice()];
  drawAgain = () => draw(t, i, wished, every);
  let picture = null;
  if (t >= last) {
    parts.push(make("p", {}, t < steps.length ? say("below_in_file", { file: fileOf(chain[t + 1]) }) : say("finest")));
  } else {
    const pairs = t + 2 <= last && steps[t][0] !== steps[t + 1][0];
    const mode = pairs ? wished : 1;
    if (pairs) parts.push(views(t, i, mode));
    const possible = (d) => level(...steps[d]).possible[codes[steps[d][0]].code];
    const items = mode === 2 ? cellsOf(t, i, codes) : childrenOf(t, i, codes);
    const cells = mode === 2 ? possible(t) * possible(t + 1) : possible(t);
    const name = depths[t + mode];
    picture = mode === 2 ? matrix(items, t, valueOf(t, i), every, () => draw(t, i, wished, true))
      : numeric ? bars(items, possible(t), outermost(t, codes, possible(t))) : map(items);
    const unlisted = cells - items.length;
    const note = say(unlisted ? "listed_some" : "listed_all", { listed: items.length, cells });
    const line = mode === 2 ? [] : [make("p", { class: "readout", "aria-hidden": "true" }, note)];
    parts.push(...picture.nodes.slice(0, 1), ...line, ...picture.nodes.slice(1), listing(items, say("caption", { name: nameOf(codes), by: name, note }), name));
  }
  box.replaceChildren(...parts);
  if (picture) picture.draw();
  redraw = picture ? picture.draw : null;
}

function refocus(before) {
  const first = box.querySelector(".tile[tabindex='0'], .cell[tabindex='0'], .bar[tabindex='0']");
  const heading = box.querySelector("h3");
  const wanted = { first: first || heading, here: heading, view: box.querySelector("[aria-pressed='true']"),
    back: before && before.length ? [...box.querySelectorAll("[data-i]")].find((tile) =>
      before[tile.dataset.t] === Number(tile.dataset.i)) || heading : heading }[focus];
  focus = null;
  if (wanted) wanted.focus({ preventScroll: wanted !== heading });
}

function go(t, i, mode, then) {
  focus = then;
  const hash = `#at-${t}-${i}-${mode}`;
  if (location.hash === hash) show(); else location.hash = hash;
}

async function show() {
  const hash = location.hash, place = /^#at-(\d{1,3})-(\d{1,8})-([12])$/.exec(hash);
  if (!place && location.hash.length > 1 && box.dataset.ready) return; // another place of the page
  let [t, i, mode] = place ? place.slice(1).map(Number) : [0, 0, 2];
  if (t > last) [t, i] = [0, 0];
  await need(t + 2);
  if (location.hash !== hash) return; // someone went on while this level was read
  if (t > 0 ? i >= depth(t).order.length : i > 0) [t, i] = [0, 0];
  const before = lineage(shown[0], shown[1]);
  shown = [t, i, mode];
  asked = "";
  rows = ROWS;
  draw(t, i, mode);
  box.dataset.ready = "true";
  refocus(before);
}

function goUp(event) {
  const [t, i, mode] = shown;
  if (event.key !== "Escape" || t === 0) return;
  const path = lineage(t, i);
  const pair = t >= 2 && steps[t - 1][0] !== steps[t - 2][0] && mode === 2;
  const up = pair ? t - 2 : t - 1;
  go(up, path[up], 2, "back");
}

if (last >= 1 && facts.start.length && typeof DecompressionStream !== "undefined") {
  box.addEventListener("keydown", goUp);
  addEventListener("hashchange", show);
  if (axes.length === 1 && !numeric) box.before(finder((_axis, k, code) => go(k, code, 2, "here")));
  addEventListener("resize", () => {
    if (redraw && innerWidth !== width) {
      width = innerWidth;
      redraw();
    }
  });
  show();
}
