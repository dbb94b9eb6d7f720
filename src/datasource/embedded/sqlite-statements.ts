/** How many statements a text of SQLite has, whose library runs the first one and says nothing of the others. */

const TOKEN = /'[^']*'?|"[^"]*"?|`[^`]*`?|\[[^\]]*\]?|--[^\n]*|\/\*[\s\S]*?(?:\*\/|$)|\s+|\w+|[\s\S]/g;
const BLANK = /^(?:\s|--|\/\*)/;

/** Whether anything but blanks and comments comes after the first statement. Takes time linear in the text. */
export function hasSecondStatement(sql: string): boolean {
  const words: string[] = []; // of the beginning, to know a trigger by
  let isBody = false; // of a trigger, whose statements end with `;` as well
  let [before, last] = ['', ''];
  let isOver = false;
  for (const [token] of sql.matchAll(TOKEN)) {
    if (BLANK.test(token)) continue;
    if (isOver && token !== ';') return true;
    const word = token.toUpperCase();
    if (words.length < 6) words.push(word); // EXPLAIN QUERY PLAN CREATE TEMPORARY TRIGGER
    if (word === 'TRIGGER' && isTrigger(words)) isBody = true;
    // The body ends with `; END`, and nothing inside of it can have that.
    const endsBody = last === 'END' && before === ';';
    if (token === ';' && (!isBody || endsBody)) isOver = true;
    [before, last] = [last, word];
  }
  return false;
}

function isTrigger(words: readonly string[]): boolean {
  const [first, second, third, ...others] = words.filter(
    (word) => !['EXPLAIN', 'QUERY', 'PLAN'].includes(word),
  );
  if (first !== 'CREATE' || others.length > 0) return false;
  return second === 'TRIGGER' || ((second === 'TEMP' || second === 'TEMPORARY') && third === 'TRIGGER');
}
