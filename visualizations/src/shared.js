// Texts that begin alike: what they share is left out, so that what tells them apart is seen.

const [LEAST_SHARED, LEAST_LEFT, LEAST_ALIKE] = [5, 3, 3]; // fewer words, as "I should have", say whether it was so
const KEPT = 2; // of what is shared, so that one can read on from there

/** The texts without the words with which three of them or more begin. */
export function withoutShared(texts) {
  const words = texts.map((text) => text.split(" "));
  return words.map((own, place) => {
    const alike = words.filter((_, other) => other !== place).map((other) => shared(own, other)).sort((a, b) => b - a);
    const many = Math.min(alike[LEAST_ALIKE - 2] ?? 0, own.length - LEAST_LEFT);
    return many < LEAST_SHARED ? texts[place] : `… ${own.slice(many - KEPT).join(" ")}`;
  });
}

/** Names without the words with which all of them begin. */
export function withoutCommon(names) {
  const words = names.map((name) => name.split(" "));
  const many = Math.min(...words.map((own) => Math.min(shared(own, words[0]), own.length - 1)));
  return names.length > 1 ? words.map((own) => own.slice(many).join(" ")) : names;
}

function shared(one, other) {
  const place = one.findIndex((word, at) => word !== other[at]);
  return place < 0 ? one.length : place;
}
