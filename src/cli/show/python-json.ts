/**
 * Strings, which stay as they are (one without an end goes up to the end, so that it is looked at once), and the words that Python writes for numbers that JSON does
 * not have.
 */
const WORDS = /"(?:[^"\\]|\\.)*"?|-?\bInfinity\b|\bNaN\b/gs;

/** Returns the value of JSON as Python writes it. Throws `SyntaxError` for anything else. */
export function parsePythonJson(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return JSON.parse(text.replace(WORDS, (word) => (word.startsWith('"') ? word : `"${word}"`)));
  }
}
