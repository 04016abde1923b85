// The sentence deck: which sentences a few typed letters mean, in which order; no page, so that it is tested without one.
export const RECENT = 5;
const plain = (text) => text.normalize("NFD").replace(/\p{M}/gu, "").toLowerCase();

// Every typed word begins a word of the sentence or of its group; those whose first word it begins come first.
export function found(deck, typed) {
  const words = plain(typed).split(/\s+/).filter(Boolean);
  if (!words.length) return deck;
  const begins = (text, word) =>
    plain(text)
      .split(/[^\p{L}\p{N}]+/u)
      .some((one) => one.startsWith(word));
  const hits = deck.filter((one) => words.every((word) => begins(one.text, word) || begins(one.group ?? "", word)));
  const isFirst = (one) => plain(one.text).startsWith(words[0]);
  return [...hits.filter(isFirst), ...hits.filter((one) => !isFirst(one))];
}

// The newest first, each once.
export const recent = (before, sentence) =>
  [sentence, ...before.filter((one) => one.text !== sentence.text)].slice(0, RECENT);

// The same sentences, each in the place that it had: a new one takes the place of one that is gone.
export function placed(slots, sentences) {
  const isIn = (list, one) => list.some((other) => other.text === one.text),
    fresh = sentences.filter((one) => !isIn(slots, one)),
    kept = slots.map((one) => (isIn(sentences, one) ? one : fresh.shift())).filter(Boolean);
  return [...kept, ...fresh];
}

// The deck in groups, in the order of the file.
export function grouped(deck) {
  const groups = new Map();
  for (const one of deck) groups.set(one.group || "", [...(groups.get(one.group || "") ?? []), one]);
  return [...groups];
}
