/**
 * The words of a statement, for the checks that look for words that write. Databases split the same text differently.
 * They differ in where a comment or a quotation ends, in whether a number may touch the next word (`SELECT 1DELETE …`
 * is two statements to SQL Server), and in which letters are equal (to Spark `ſ` is an S). So quotations and comments
 * are read like all other text, and a text contains a word if any of these readings contains it. A check can
 * therefore refuse too much, but never too little.
 */

const RUN = /[A-Za-z0-9_]+/g;
const BEGINS_WITH_DIGIT = /^[0-9]/;
const ENDS_WITH_LETTER = /[A-Z]$/;

/**
 * Returns whether some database may read one of the words in the text. The words are in capitals, from A to Z. Takes linear time.
 */
export function mayContain(text: string, words: ReadonlySet<string>): boolean {
  if (hasWord(text, words)) return true;
  return /\P{ASCII}/u.test(text) && hasWord(foldLetters(text), words);
}

/**
 * Replaces letters that a database may equate with A to Z, such as `ı`, `ſ`, the Kelvin sign and full-width letters.
 */
export function foldLetters(text: string): string {
  return text.normalize('NFKC').toUpperCase();
}

function hasWord(text: string, words: ReadonlySet<string>): boolean {
  /**
   * The end of the preceding run of letters and digits, if that run was a number or began with one.
   */
  let numberEnd = -1;
  for (const { 0: found, index } of text.matchAll(RUN)) {
    const run = found.toUpperCase();
    if (words.has(run)) return true;
    // In `1.e5DELETE` the exponent belongs to the number that begins before the point.
    const isNumber = BEGINS_WITH_DIGIT.test(run) || (index === numberEnd + 1 && text[numberEnd] === '.');
    numberEnd = isNumber ? index + run.length : -1;
    // The end of the number is unknown, because hexadecimal digits and exponents are letters, too.
    if (isNumber && ENDS_WITH_LETTER.test(run)) for (const word of words) if (run.endsWith(word)) return true;
  }
  return false;
}
