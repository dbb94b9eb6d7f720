/** Statements are written with `?`; each database has its own way to mark a parameter. */

/** What `?` means nothing in: quoted text and names, comments, PostgreSQL's dollar quotes. */
const OPAQUE =
  /'(?:[^']|'')*'|"(?:[^"]|"")*"|`[^`]*`|--[^\n]*|\/\*[\s\S]*?\*\/|\$([A-Za-z_]\w*)?\$[\s\S]*?\$\1\$/y;

/**
 * `sql` with every `?` outside of quotes and comments replaced, in order; and how many there were. A statement without
 * parameters is not to be passed through here: some databases have operators that contain `?`.
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
