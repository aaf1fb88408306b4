// How a numeric column is distributed within a place: its quartiles, and a picture of its ranges.

const FEW_BARS = 12, MANY_BARS = 64; // of a picture of a place
const values = numeric === undefined ? null : formatted({ minimumFractionDigits: facts.digits, maximumFractionDigits: facts.digits });

// The quartiles of the cells of a cuboid, each with its intervals; null where the page has none.
async function readQuartiles(name) {
  if (!document.getElementById(`quartiles-${name}`)) return null;
  const found = (await parts(`quartiles-${name}`)).map((part) => numbers(part).map(unfolded));
  const scaled = (value) => value / 10 ** facts.digits, each = 1 + 2 * facts.sure.length;
  return (i) => [0, 1, 2].map((q) => {
    const [value, ...ends] = found.slice(q * each, (q + 1) * each).map((part) => part[i]);
    return { value: scaled(value), get low() { return scaled(value - ends[2 * sure]); }, get high() { return scaled(value + ends[2 * sure + 1]); } };
  });
}

const medianOf = ({ quartiles }) => quartiles && quartiles[1];
const spreadOf = ({ low, high }) => say("from_to", { low: values.format(low), high: values.format(high) });
const isColouredByMedian = ({ measured }) => measured && measured.key === "median";
const medianName = () => say("median_of", { name: apart(axes[numeric].name) });

// The ranges of a place in a picture: as many as it has room for, of its own counts or else of sums of finer ones.
function rangesOf(place) {
  const own = levelsOf(place);
  const rank = (one) => {
    const bars_ = facts.sizes[numeric][one[numeric]], isFit = FEW_BARS <= bars_ && bars_ <= MANY_BARS;
    const beyond = one.reduce((sum, k, a) => sum + (a === numeric ? 0 : k - own[a]), 0);
    return (isFit ? 0 : 1000) + 100 * beyond + (bars_ > MANY_BARS ? one[numeric] : -one[numeric]);
  };
  return facts.cuboids.filter((one) => one[numeric] > 0 && isCoarser(own, one)).sort((x, y) => rank(x) - rank(y))[0];
}

// A place's quartiles and the picture of its ranges; null where the page has none.
function spread(place, item) {
  const levels = medianOf(item) && rangesOf(place);
  if (!levels) return null;
  const [lower, median, upper] = item.quartiles, own = levelsOf(place);
  const line = (words, one) => make("div", {}, make("dt", {}, words), make("dd", {}, make("strong", {}, values.format(one.value)), " ", spreadOf(one)));
  const view = among(place, own.map((c, a) => (a === numeric ? levels[a] : c))), part = cut(place, levels);
  const items = isSame(view, among(place, levels)) ? itemsOf(part, view) : sumsOf(part, view, numeric);
  const picture = bars(items, view);
  picture.draw();
  return make("div", { class: "spread" },
    make("dl", { class: "beside" }, line(medianName(), median), line(say("lower"), lower), line(say("upper"), upper),
      make("div", {}, make("dd", {}, say("quartiles_sure")))),
    make("figure", {}, picture.nodes[0], make("p", { class: "readout", "aria-hidden": "true" }, say("hint"))));
}
