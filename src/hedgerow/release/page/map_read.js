// What is said of a map: where one is, the count of an area, and the same counts as a table.

const capital = (words) => words.slice(0, 1).toLocaleUpperCase(language) + words.slice(1);
const heading = () => [capital(subject()), ...[...seen.only].map(([a, { k, code }]) => label(a, k, code))].join(", ");

function subject() {
  const within = seen.zoom.k ? nameOfNode(sheet(), seen.zoom.k, seen.zoom.node) : "";
  if (!seen.flows) return within ? say("map_within", { unit: unitWords(), level: levelWords(sheet(), seen.k), area: within }) : say("map_by", { unit: unitWords(), level: levelWords(sheet(), seen.k) });
  return say(seen.side === 0 ? "map_from" : "map_to", { unit: unitWords(), area: nameOfNode(across(), seen.k, seen.focus.node) });
}
const unitWords = () => facts.unit || say("map_records");

function crumbsOfMap() {
  if (!seen.zoom.k) return null;
  const own = sheet(), steps_ = [{ k: 0, node: 0 }];
  for (const k of levelsOnMap().filter((one) => one <= seen.zoom.k)) steps_.push({ k, node: nodeAbove(own, seen.zoom.k, seen.zoom.node, k) });
  const entry = ({ k, node }, i) => {
    const words = isolated(k ? nameOfNode(own, k, node) : say("map_everything"));
    const isHere = i === steps_.length - 1;
    return make("li", {}, isHere ? make("span", { "aria-current": "page" }, words)
      : make("button", { type: "button", click: () => look({ zoom: { k, node }, k: finerThan(k), chosen: null, entered: true }) }, words));
  };
  return make("nav", { class: "no-print", "aria-label": say("map_where") }, make("ol", { class: "crumbs" }, ...steps_.map(entry)));
}

function pressable(words, isPressed, click) {
  return make("button", { type: "button", "aria-pressed": String(isPressed), click }, words);
}

function toolsOfMap() {
  const levels = levelsOnMap().filter((k) => k > seen.zoom.k);
  const byLevel = levels.length > 1 ? make("div", { role: "group", "aria-label": say("map_levels") },
    ...levels.map((k) => pressable(isolated(levelWords(sheet(), k)), k === seen.k, () => look({ k, chosen: null })))) : null;
  const only = seen.choices.map(onlyOf);
  if (!seen.flows) return (byLevel || only.length) && make("div", { class: "tools atlas-tools" }, byLevel, ...only);
  const turn = make("div", { role: "group", "aria-label": say("map_direction") },
    pressable(say("map_from_it"), seen.side === 0, () => look({ side: 0 })), pressable(say("map_to_it"), seen.side === 1, () => look({ side: 1 })));
  const other = across();
  const names = other.levels[seen.k].labels.map((_label, node) => ({ node, name: nameOfNode(other, seen.k, node) })).filter(({ node }) => hasShape(other, seen.k, node));
  names.sort((x, y) => x.name.localeCompare(y.name, language));
  const pick = make("select", { change: (event) => look({ focus: { k: seen.k, node: Number(event.target.value) } }) },
    ...names.map(({ node, name }) => make("option", { value: node, selected: node === seen.focus.node }, name)));
  return make("div", { class: "tools atlas-tools" }, turn, make("label", {}, `${say("map_area")} `, pick), byLevel, ...only);
}

// Everything of an axis that is not on the map, or one of its codes alone.
function onlyOf({ a, k, labels }) {
  const now = seen.only.get(a);
  const pick = make("select", { "data-only": a, change: (event) => {
    const only = new Map(seen.only), code = event.target.value;
    if (code) only.set(a, { k, code: Number(code) }); else only.delete(a);
    look({ only });
  } }, make("option", { value: "", selected: !now }, say("map_everything")),
  ...labels.map((words, code) => make("option", { value: code, selected: Boolean(now) && now.code === code }, words)));
  return make("label", {}, isolated(axes[a].name), " ", pick);
}

function readArea(node) {
  const item = itemAt(node), place = atlas.querySelector(".atlas-read");
  for (const mark of atlas.querySelectorAll(".mark")) mark.setAttribute("d", shapeOf(sheet(), seen.k, node).path);
  const above = [levelWords(sheet(), seen.k)];
  for (let k = seen.k - 1; k > 0; k--) above.push(nameOfNode(sheet(), k, nodeAbove(sheet(), seen.k, node, k)));
  const sure = sureOf(item);
  const buttons = [finerThan(seen.k) && make("button", { type: "button", class: "more", click: () => openArea(node) }, say("map_open", { area: item.name })),
    seen.flows && node !== seen.focus.node && make("button", { type: "button", class: "more", click: () => look({ focus: { k: seen.k, node } }) }, say(seen.side === 0 ? "map_flows_from" : "map_flows_to", { area: item.name }))].filter(Boolean);
  place.replaceChildren(make("h3", {}, isolated(item.name)),
    make("p", { class: "under" }, isolated([...above, item.code].filter((words, i, all) => words && all.indexOf(words) === i).join(" · "))),
    make("p", { class: "figure" }, item.isUnlisted ? "0" : number.format(item.count)),
    make("p", {}, item.isUnlisted ? say("map_unlisted") : `${say("interval")} ${interval(item)}`),
    ...(item.isUnlisted ? [] : [make("p", { class: `sure sure-${sure}` }, make("b", {}, RELIABILITY[sure]), ` ${say(REACH[sure])}`)]),
    ...(item.estimate === undefined || item.isUnlisted ? [] : [make("p", { class: "doubt" }, say("map_contradicted", { estimate: Math.round(item.estimate) }))]),
    ...(buttons.length ? [make("p", { class: "no-print actions" }, ...buttons)] : []));
}

function tableOfMap() {
  const holder = make("div", { class: "atlas-table" });
  const sorted = seen.items.slice().sort((x, y) => y.count - x.count);
  const fill = (rows) => {
    const body = sorted.slice(0, rows).map((item) => make("tr", {},
      make("th", { scope: "row" }, make("button", { type: "button", class: "open", click: () => { choose(item.node); } }, isolated(item.name))),
      make("td", { class: "n", "data-of": say("count") }, number.format(item.count)),
      make("td", { class: "n", "data-of": say("interval") }, make("span", {}, item.isUnlisted ? say("map_none") : interval(item), " ", make("small", {}, item.isUnlisted ? null : RELIABILITY[sureOf(item)])))));
    const head = [levelWords(sheet(), seen.k), say("count"), say("interval")];
    const more = sorted.length > rows && rows < MOST_LISTED_AREAS ? make("button", { type: "button", class: "more", click: () => {
      fill(MOST_LISTED_AREAS);
      holder.querySelectorAll("tbody button")[rows].focus();
    } }, say("map_more", { n: Math.min(sorted.length, MOST_LISTED_AREAS) - rows })) : null;
    holder.replaceChildren(make("div", { class: "scroll", tabindex: 0, role: "group", "aria-label": say("map_table") },
      make("table", {}, make("caption", {}, make("span", {}, heading())),
        make("thead", {}, make("tr", {}, ...head.map((words, i) => make("th", { scope: "col", class: i ? "n" : undefined }, words)))),
        make("tbody", {}, ...body))), ...(more ? [more] : []));
  };
  fill(LISTED);
  return holder;
}

