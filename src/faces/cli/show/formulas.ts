/** Formulas of notebooks as MathML, which browsers draw without a script or a font of ours. */
import temml from 'temml';

/** A longer formula stays text: drawing it could take minutes. */
const MAX_FORMULA_CHARS = 20_000;
/** How often macros are replaced in one formula. Without a limit, a macro could double for ever. */
const MAX_EXPANSIONS = 1000;

/**
 * Returns the MathML of the content of a `marimo-tex` element: `||(x||)` in a line, `||[x||]` or `||(||(x||)||)` apart. Formulas
 * that TeX does not have are shown as text.
 */
export function formulaOf(content: string): string {
  const displayMode = /^\s*\|\|(\[|\(\|\|\()/.test(content);
  const tex = content.replace(/\|\|[()[\]]/g, '').trim();
  if (tex.length <= MAX_FORMULA_CHARS) {
    try {
      return temml.renderToString(tex, { displayMode, throwOnError: true, maxExpand: MAX_EXPANSIONS });
    } catch {
      // The formula is shown as it was written.
    }
  }
  const mark = displayMode ? '$$' : '$';
  return `<code>${`${mark}${tex}${mark}`.replace(/&/g, '&amp;').replace(/</g, '&lt;')}</code>`;
}
