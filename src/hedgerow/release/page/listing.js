// The rows below a picture, and what is remembered between one view and the next.

const box = document.getElementById("explorer");
const ROWS = 25;
let order = numeric ? "code" : "size";
let shown = null; // the place
let focus = null; // what to focus when the next view is there
let redraw = null, width = innerWidth;
let rows = ROWS, asked = ""; // how many rows there are below the picture, and with which words
let drawAgain = null; // what is shown, as it is

function whisker(item, most) {
  const across = (value) => (4 + 136 * Math.log1p(value) / Math.log1p(most)).toFixed(1);
  return make("svg", { class: "whisker", viewBox: "0 0 144 14", "aria-hidden": "true" },
    make("line", { x1: across(item.low), x2: across(item.high), y1: 7, y2: 7 }),
    make("circle", { cx: across(item.count), cy: 7, r: 2.6 }));
}

// Which of the intervals to show; textures and words follow.
function surenessChoice() {
  const buttons = facts.sure.map((level, k) => make("button", { type: "button", "aria-pressed": String(k === sure), "data-sure": level, click: () => {
    sure = k;
    standing.sure = level;
    drawAgain();
    dispatchEvent(new Event("sureness"));
    box.querySelector(`[data-sure="${level}"]`).focus();
  } }, percent(level / 100)));
  return make("div", { class: "tools", role: "group", "aria-label": say("sureness") }, say("sureness"), make("div", { class: "choice" }, ...buttons));
}

function listing(items, caption, heading) {
  const holder = make("div");
  const draw = () => {
    const words = wordsIn(asked);
    const sorted = items.filter((item) => words.every((word) => plain(item.name).includes(word)));
    if (order === "size") sorted.sort((a, b) => b.count - a.count);
    const most = Math.max(...items.map((item) => Math.max(item.high, item.count)));
    const lines = sorted.slice(0, rows).map((item) => make("tr", {},
      make("th", { scope: "row" }, item.opens
        ? make("button", { type: "button", class: "open", click: () => go(item.to, "here") }, isolated(item.name))
        : isolated(item.name)),
      make("td", { class: "n", "data-of": say("count") }, number.format(item.count), isContradicted(item)
        ? make("small", { class: "doubt" }, say("contradicted", { estimate: item.estimate })) : null),
      make("td", { class: "n", "data-of": say("interval") }, interval(item)),
      make("td", { "data-of": say("reliability") }, make("i", { class: `dot d${reliability(item)}`, "aria-hidden": "true" }), RELIABILITY[reliability(item)]),
      make("td", { class: "wide-only" }, whisker(item, most)),
      make("td", { class: "n wide-only" }, percent(item.part))));
    const head = [[heading], [say("count"), "n"], [say("interval"), "n"], [say("reliability")], [say("log_scale"), "wide-only"], [say("part"), "n wide-only"]]
      .map(([words, kind]) => make("th", { scope: "col", class: kind }, words));
    const choice = make("select", { "aria-label": say("order"), change: (event) => { order = event.target.value; draw(); holder.querySelector("select").focus(); } },
      make("option", { value: "size", selected: order === "size" }, say("largest_first")),
      make("option", { value: "code", selected: order === "code" }, say("by_code")));
    const left = sorted.length - rows;
    const sought = make("input", { type: "search", autocomplete: "off", value: asked, input: (event) => {
      asked = event.target.value;
      rows = ROWS;
      const at = event.target.selectionStart;
      draw();
      const next = holder.querySelector("input");
      next.focus();
      next.setSelectionRange(at, at);
    } });
    const parts = [make("div", { class: "tools" }, make("label", {}, say("rows_are"), " ", choice),
      make("label", {}, say("with_words"), " ", sought),
      make("button", { type: "button", class: "save", disabled: !sorted.length, click: () => download(sorted) }, say("download", { n: sorted.length }))),
      make("div", { class: "scroll", tabindex: 0, role: "group", "aria-label": say("table_scrolls") }, make("table", {},
        make("caption", {}, make("span", {}, caption)), make("thead", {}, make("tr", {}, ...head)),
        make("tbody", {}, ...lines)))];
    if (left > 0) {
      parts.push(make("button", { type: "button", class: "more", click: () => {
        rows += 4 * ROWS;
        draw();
        (holder.querySelector("button.more") || holder.querySelector(".scroll")).focus();
      } }, left > 4 * ROWS ? say("show_more", { some: 4 * ROWS, left }) : say("show_rest", { n: left })));
    }
    holder.replaceChildren(...parts);
  };
  draw();
  return holder;
}

