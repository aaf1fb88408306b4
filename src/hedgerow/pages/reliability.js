// How far a count may be from the truth, in three words that stand everywhere.

const FIRM = 0, ROUGH = 1, NOISE = 2;
const WITHIN = [0.1, 0.5];
const RELIABILITY = ["firm", "rough", "noise"].map((key) => say(key));

// By the farther end of its interval: within 10 % of the count, within half of it, or beyond.
function reliability({ count, low, high }) {
  const reach = Math.max(high - count, count - low) / count;
  return reach <= WITHIN[0] ? FIRM : reach <= WITHIN[1] ? ROUGH : NOISE;
}
