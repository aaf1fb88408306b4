// What every page's script begins with: its facts, its words, and elements made of text alone.

const facts = JSON.parse(document.getElementById("facts").textContent);
const language = document.documentElement.lang;
const plural = new Intl.PluralRules(language);

const standing = {}; // values that any text may use, such as the level of the intervals shown

// A text of the catalogue with its values; one that depends on a number has two forms.
function say(key, values = {}) {
  const text = facts.words[key];
  const form = typeof text === "string" ? text : plural.select(values.n) === "one" ? text.one : text.other;
  const known = { ...standing, ...values };
  return form.replace(/\{(\w+)\}/g, (_gap, name) =>
    (typeof known[name] === "number" ? number.format(known[name]) : known[name]));
}

function make(tag, attributes, ...children) {
  const svg = ["svg", "line", "circle"].includes(tag);
  const made = svg ? document.createElementNS("http://www.w3.org/2000/svg", tag)
    : document.createElement(tag);
  for (const [name, value] of Object.entries(attributes || {})) {
    if (value === undefined || value === false) continue;
    if (typeof value === "function") made.addEventListener(name, value);
    else made.setAttribute(name, value === true ? "" : value);
  }
  made.append(...children.filter((one) => one !== null && one !== undefined));
  return made;
}

// Words of others, whose direction does not turn what stands around them.
const isolated = (words) => make("bdi", {}, words);
