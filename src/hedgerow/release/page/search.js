// Areas by their names and codes, wherever they are in the release.

const MOST_FOUND = 12;
const plain = (words) => words.normalize("NFD").replace(/[\u0300-\u036f]/g, "").toLowerCase();
const wordsIn = (query) => plain(query).split(/\s+/).filter(Boolean);
let index = null;

// Every area of the levels that the page carries, with its words.
async function indexed() {
  if (index) return index;
  const found = [];
  for (const [a, axis] of axes.entries()) {
    for (let k = 1; k <= axis.levels.length; k++) {
      const name = `level-${a}-${k}`;
      if (!document.getElementById(name)) continue;
      if (!held.has(name)) await readLevel(a, k);
      level(a, k).labels.forEach((_own, code) => found.push({ a, k, code, words: plain(label(a, k, code)) }));
    }
  }
  index = found;
  return index;
}

// Those with all words of a query: first the area that is called so, then such as begin so; coarse before fine.
function matching(areas, query) {
  const words = wordsIn(query);
  if (!words.length) return [];
  const whole = words.join(" "), rank = ({ words: own, k }) => k +
    (own === whole || own.startsWith(`${whole} (`) || own.endsWith(`(${whole})`) ? 0 : own.startsWith(whole) ? 100 : 200);
  return areas.filter(({ words: own }) => words.every((word) => own.includes(word)))
    .sort((one, other) => rank(one) - rank(other));
}

function finder(open) {
  const list = make("ul", { class: "found" }), said = make("span", { role: "status" });
  const field = make("input", { type: "search", autocomplete: "off", input: async () => {
    const asked = field.value, areas = matching(await indexed(), asked);
    if (field.value !== asked) return; // someone typed on meanwhile
    said.replaceChildren(wordsIn(asked).length ? say("found", { n: areas.length }) : "");
    list.replaceChildren(...areas.slice(0, MOST_FOUND).map(({ a, k, code }) => make("li", {},
      make("button", { type: "button", class: "open", click: () => open(a, k, code) }, isolated(label(a, k, code))),
      make("small", {}, ` ${levelName(a, k)}`))));
  } });
  return make("div", { class: "finder", role: "search" },
    make("label", {}, say("find"), " ", field), " ", said, list);
}
