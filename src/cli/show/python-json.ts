/** Strings, which stay as they are, and the words that Python writes for numbers that JSON does not have. */
const WORDS = /"(?:[^"\\]|\\.)*"|-?\bInfinity\b|\bNaN\b/g;

/** The value of JSON as Python writes it. Throws `SyntaxError` for anything else. */
export function parsePythonJson(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return JSON.parse(text.replace(WORDS, (word) => (word.startsWith('"') ? word : `"${word}"`)));
  }
}
