/**
 * The one function that cuts text. A character beyond U+FFFF is a pair of UTF-16 units in JavaScript. Half a pair is not a character:
 * UTF-8 has no bytes for it, so clients in Python and vendors of models cannot read JSON that contains one. A test refuses
 * `slice`, `substring` and `substr` on texts elsewhere, unless a comment says why they cut no pair.
 */

/**
 * Returns the part of a text from `start` to `end`, like `slice`, but a place between the halves of a pair counts as the place before
 * the pair. So the parts of a text that is cut at the same places are the whole text, and `cutText(text, 0, n)` has at most `n` units.
 */
export function cutText(text: string, start: number, end = text.length): string {
  if (start === 0 && end >= text.length) return text;
  return text.slice(placeToCut(text, start), placeToCut(text, end)); // the places are between characters
}

/** Returns the end of a text, with at most `maxChars` units. */
export function endOfText(text: string, maxChars: number): string {
  return cutText(text, placeAfter(text, Math.max(0, text.length - maxChars)));
}

/**
 * Returns the place at which `cutText` cuts when it is asked for `place`. A negative place counts from the
 * end.
 */
export function placeToCut(text: string, place: number): number {
  const at = place < 0 ? Math.max(0, text.length + place) : place;
  const isWithinPair = isLowSurrogate(text.charCodeAt(at)) && isHighSurrogate(text.charCodeAt(at - 1));
  return isWithinPair ? at - 1 : at;
}

/** Returns the place, or if it would cut a pair, the place after the pair. */
export function placeAfter(text: string, place: number): number {
  return placeToCut(text, place) < place ? place + 1 : place;
}

function isHighSurrogate(unit: number): boolean {
  return unit >= 0xd800 && unit <= 0xdbff;
}

function isLowSurrogate(unit: number): boolean {
  return unit >= 0xdc00 && unit <= 0xdfff;
}
