// The rows beside a picture, and what is remembered between one view and the next.

const box = document.getElementById("explorer");
const ROWS = 12;
let order = null; // of the rows, once somebody has chosen one
let shown = null; // the place and the view around it
let focus = null; // what to focus when the next view is there
let redraw = null, width = innerWidth;
let rows = ROWS, sought = ""; // how many rows there are, and with which words

// Which of the intervals to show; textures and words follow.
function surenessChoice() {
  const buttons = facts.sure.map((level, k) => make("button", { type: "button", "aria-pressed": String(k === sure), "data-sure": level, click: () => {
    sure = k;
    standing.sure = level;
    draw();
    box.querySelector(`[data-sure="${level}"]`).focus();
  } }, percent(level / 100)));
  return make("div", { class: "tools", role: "group", "aria-label": say("sureness") }, say("sureness"), make("div", { class: "choice" }, ...buttons));
}

// The columns of the rows: heading, its class, and what stands in a cell.
const COLUMNS = [
  { words: () => say("count"), kind: "n", cell: (item) => [number.format(item.count), isContradicted(item)
    ? make("small", { class: "doubt" }, say("contradicted", { estimate: item.estimate })) : null] },
  { words: () => say("interval"), kind: "n", cell: (item) => [interval(item)] },
  { words: () => sharedOut(shown.view), kind: "n", cell: shareOf, isThere: (items) => items.some(({ share, measured }) => share && !measured) },
  { words: ({ name }) => capital(name), kind: "n", cell: ({ measured }) => partOf(measured), isThere: (items) => items.some(({ measured }) => measured) },
  { words: medianName, kind: "n", cell: (item) => (medianOf(item) ? [make("b", {}, values.format(medianOf(item).value)), " ", make("small", {}, spreadOf(medianOf(item)))] : []),
    isThere: (items) => items.some((item) => medianOf(item) && !isColouredByMedian(item)) },
  { words: (measured) => say("reliability") + (measured ? ` (${measured.short.toLocaleLowerCase(language)})` : ""), cell: (item) => (item.measured && item.measured.value === undefined ? [item.measured.untold] : sureMark(shownOf(item))) },
];

function listing(items, caption, heading_, note) {
  const holder = make("div", { class: "listing", "data-of": keyOf(splitInto(shown.view)) });
  const columns = COLUMNS.filter(({ isThere }) => !isThere || isThere(items)).map((one) => ({ ...one, head: one.words(items.length && items[0].measured) }));
  const line = (item) => make("tr", { "data-at": item.at, mouseenter: () => readOut(item) },
    make("th", { scope: "row" }, make("button", { type: "button", class: "open", click: (event) => choose(item, event.detail ? null : "here") }, isolated(item.name))),
    ...columns.map(({ head, kind, cell }) => make("td", { class: kind, "data-of": head }, ...cell(item))));
  const fill = () => {
    const now = order || (String(splitAxes(shown.view)) === String(numeric) ? "code" : "size"); // ranges have an order
    const words = wordsIn(sought);
    const sorted = items.filter((item) => words.every((word) => plain(item.name).includes(word)));
    if (now === "size") sorted.sort((a, b) => b.count - a.count);
    const left = sorted.length - rows;
    const head = [[heading_], ...columns.map(({ head: own, kind }) => [own, kind])].map(([own, kind]) => make("th", { scope: "col", class: kind }, own));
    const choice = make("select", { "aria-label": say("order"), change: (event) => { order = event.target.value; fill(); holder.querySelector("select").focus(); } },
      make("option", { value: "size", selected: now === "size" }, say("largest_first")),
      make("option", { value: "code", selected: now === "code" }, say("by_code")));
    const field_ = make("input", { type: "search", autocomplete: "off", value: sought, input: (event) => {
      sought = event.target.value;
      rows = ROWS;
      const at = event.target.selectionStart;
      fill();
      const next = holder.querySelector("input");
      next.focus();
      next.setSelectionRange(at, at);
    } });
    const more = left > 0 ? make("button", { type: "button", class: "more", click: () => {
      rows += 8 * ROWS;
      fill();
      (holder.querySelector("button.more") || holder.querySelector(".scroll")).focus();
    } }, left > 8 * ROWS ? say("show_more", { some: 8 * ROWS, left }) : say("show_rest", { n: left })) : null;
    holder.replaceChildren(
      make("div", { class: "scroll", tabindex: 0, role: "group", "aria-label": say("table_scrolls") }, make("table", {},
        make("caption", { class: "unseen" }, make("span", {}, caption)), make("thead", {}, make("tr", {}, ...head)),
        make("tbody", {}, ...sorted.slice(0, rows).map(line)))),
      make("div", { class: "tools" }, more, make("button", { type: "button", class: "save", disabled: !sorted.length, click: () => download(sorted) }, say("download", { n: sorted.length })),
        make("label", {}, say("rows_are"), " ", choice), make("label", {}, say("with_words"), " ", field_)),
      make("p", { class: "note" }, note, left > 0 ? make("span", { class: "paper" }, ` ${say("printed", { some: rows, all: sorted.length })}`) : null));
    if (shown) mark();
  };
  fill();
  return holder;
}
