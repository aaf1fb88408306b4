// Rows as a CSV file, made in the browser: codes and names apart, numbers as numbers.

const FORMULA = /^[=+\-@\t\r\n＝＋－＠]/, LONGEST_NAME = 100, NUMBER = /^[+-]?[0-9][0-9 ]*([.,][0-9]+)?$/;

// An apostrophe before what a spreadsheet would run as a formula; quotes where they are needed.
function field(value) {
  const text = String(value);
  const safe = typeof value !== "number" && FORMULA.test(text) && !NUMBER.test(text) ? `'${text}` : text;
  return /[",\r\n]/.test(safe) ? `"${safe.replaceAll('"', '""')}"` : safe;
}

// Of each axis the code of an area and its name, if its level has names.
const headingsOf = (item) => item.areas.flatMap(([a, k]) => [
  `${axes[a].name} ${axes[a].levels[k - 1]}`,
  ...(level(a, k).names.length ? [say("name_of", { level: `${axes[a].name} ${axes[a].levels[k - 1]}` })] : []),
]);
const areasIn = (item) => item.areas.flatMap(([a, k, code]) => [
  wholeCode(a, k, code), ...(level(a, k).names.length ? [level(a, k).names[code]] : []),
]);

const six = (value) => (value === undefined ? "" : Number(value.toPrecision(6)));

// What colours a map, if that is no count: the ends of its interval, and how sure it is.
const measuresOf = ({ measured }) => [
  [measured.key, six(measured.value)], [`${measured.key}_low_${measured.at}`, six(measured.low)], [`${measured.key}_high_${measured.at}`, six(measured.high)],
  [`${measured.key}_reliability`, measured.value === undefined ? RELIABILITY.find((word) => word === measured.untold) || "" : RELIABILITY[reliability(shownOf({ measured }))]],
  ...(measured.key === "share" ? [["share_of", measured.name]] : []),
];
const sharesOf = ({ share = {} }) => [["share", six(share.value)], [`share_low_${facts.sure[sure]}`, six(share.low)], [`share_high_${facts.sure[sure]}`, six(share.high)],
  ["share_of", whereOf(shown.view) || say("the_total")]];

const mediansOf = (item) => {
  const { value, low, high } = medianOf(item) || {};
  return [["median", value], [`median_low_${facts.sure[sure]}`, low], [`median_high_${facts.sure[sure]}`, high]];
};

function csv(items) {
  const more = [...(items[0].measured ? [measuresOf] : items.some(({ share }) => share) ? [sharesOf] : []), ...(items.some((item) => medianOf(item) && !isColouredByMedian(item)) ? [mediansOf] : [])];
  const moreOf = (item) => more.flatMap((own) => own(item));
  const head = [...headingsOf(items[0]), "count", "unbiased_estimate", `low_${facts.sure[sure]}`, `high_${facts.sure[sure]}`, "reliability", "contradicted", ...moreOf(items[0]).map(([name]) => name)];
  const lines = items.map((item) => [
    ...areasIn(item), item.count, item.unbiased, item.low, item.high, RELIABILITY[reliability(item)], Number(isContradicted(item)), ...moreOf(item).map(([, value]) => value),
  ]);
  return [head, ...lines].map((line) => line.map(field).join(",")).join("\r\n") + "\r\n";
}

function download(items) {
  const address = URL.createObjectURL(new Blob(["\ufeff", csv(items)], { type: "text/csv" }));
  const about = plain(`${document.title} ${whereOf(shown.view)}`).match(/[\p{L}\p{N}]+/gu) || ["counts"];
  make("a", { href: address, download: `${about.join("-").slice(0, LONGEST_NAME)}.csv` }).click();
  setTimeout(() => URL.revokeObjectURL(address), 1000);
}
