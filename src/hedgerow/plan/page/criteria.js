// The criteria: of each step, and of each division that was computed beforehand, whether it keeps them.

const criteria = [...document.querySelectorAll("#criteria .points > div")];
const KEPT = ["yes", "estimates"];
const leastMark = make("span", { class: "least", hidden: true });

// The first step at which estimates keep all; -1 where there is none.
const firstKept = () => (divided() ? points.values.findIndex((_value, place) =>
  divided().criteria.every((each) => KEPT.includes(each[place][0]))) : -1);

function showCriteria() {
  if (!criteria.length) return;
  const one = divided(), first = firstKept();
  criteria.forEach((element, i) => {
    const [key, outcome, more] = one ? one.criteria[i][state.place] : ["unknown", say("unjudged"), ""];
    element.className = key;
    element.querySelector("dt").textContent = outcome;
    element.querySelector("small").hidden = !one;
    element.querySelector("small > :first-child").textContent = more;
  });
  byId("least").textContent = !one ? say("judge_it") : first < 0 ? say("kept_never")
    : first === 0 ? say("kept_throughout") : say("kept_from", { budget: budgetAt(first) });
  byId("to-least").hidden = first < 0;
  leastMark.hidden = first < 0;
  leastMark.style.left = `${100 * first / LAST}%`;
}

function startCriteria() {
  if (!criteria.length) return;
  byId("ticks").append(leastMark);
  byId("to-least").addEventListener("click", () => { moveTo(firstKept()); byId("value").focus(); });
}
