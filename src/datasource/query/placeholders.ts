/** Rewrites the placeholder `?` of statements into each database's own parameter mark. */

/** Where `?` is not a placeholder: quoted text and names, comments, and PostgreSQL's dollar quotes. */
const OPAQUE =
  /'(?:[^']|'')*'|"(?:[^"]|"")*"|`[^`]*`|--[^\n]*|\/\*[\s\S]*?\*\/|\$([A-Za-z_]\w*)?\$[\s\S]*?\$\1\$/y;

/**
 * Returns `sql` with every `?` outside of quotes and comments replaced, in order, and the number of replacements. Do not
 * call it for a statement without parameters: some databases have operators that contain `?`.
 */
export function placeParameters(
  sql: string,
  placeholder: (position: number) => string,
): { readonly sql: string; readonly count: number } {
  let result = '';
  let count = 0;
  for (let at = 0; at < sql.length; ) {
    OPAQUE.lastIndex = at;
    const opaque = OPAQUE.exec(sql)?.[0];
    if (opaque !== undefined) {
      result += opaque;
      at += opaque.length;
    } else if (sql[at] === '?') {
      result += placeholder(++count);
      at++;
    } else result += sql[at++];
  }
  return { sql: result, count };
}
