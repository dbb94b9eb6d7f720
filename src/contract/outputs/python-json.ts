/** JSON as Python writes it, with `NaN` and the infinities, which JSON does not have. */

/**
 * Matches strings, which stay as they are, and the words that Python writes for those numbers. The
 * pattern accepts a string without its end, so that no character is read twice.
 */
const STRING_OR_NUMBER_WORD = /"(?:[^"\\]|\\.)*"?|-?\bInfinity\b|\bNaN\b/gs;

/** Returns the value of JSON as Python writes it. `NaN` and the infinities become these words. Throws `SyntaxError` for anything else. */
export function parsePythonJson(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return JSON.parse(
      text.replace(STRING_OR_NUMBER_WORD, (word) => (word.startsWith('"') ? word : `"${word}"`)),
    );
  }
}

/**
 * Returns the value of `data` if `data` is JSON as text, and otherwise `data` itself. An output of
 * JSON may come in either form.
 */
export function parsedOrText(data: unknown): unknown {
  if (typeof data !== 'string') return data;
  try {
    return parsePythonJson(data);
  } catch {
    return data; // notebook code can send anything under any type
  }
}
