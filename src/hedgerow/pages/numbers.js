// Numbers as people write them: in full, in short for marks on a scale, and parts of a whole.

const formatted = (options) => new Intl.NumberFormat(language, { useGrouping: "always", ...options });
const number = formatted({});
const compact = formatted({ notation: "compact", maximumSignificantDigits: 3 });
const short = formatted({ maximumSignificantDigits: 3 });
const percent = (part) => say("percent", { number: short.format(100 * part) });

// "974 to 1,026", never half a width; "at most 41" where the low end is 0; exact where nothing is uncertain.
function interval({ low, high, isExact }) {
  if (isExact) return say("exact");
  return low === 0 ? say("at_most", { high }) : say("from_to", { low, high });
}
