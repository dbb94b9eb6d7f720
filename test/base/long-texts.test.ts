/**
 * Functions that read text from outside of the server, with long texts of repeated units. With a cost of the square of its length, each of
 * these texts would take minutes.
 */
import assert from 'node:assert/strict';
import test from 'node:test';
import { parseHost } from '#src/base/net/ip-address.ts';
import { isSameInstant } from '#src/base/time/clock.ts';
import {
  BIGQUERY_SYNTAX,
  MSSQL_SYNTAX,
  MYSQL_SYNTAX,
  POSTGRES_SYNTAX,
  placeParameters,
} from '#src/datasource/query/placeholders.ts';
import { isReading } from '#src/datasource/query/statements.ts';
import { FoldedText, safeLine, safeText, TerminalText } from '#src/faces/cli/safe-text.ts';
import { requireJson } from '#src/http/edge/request-head.ts';
import { isKnown } from '#src/http/reply/entity-tag.ts';
import { fileStem } from '#src/notebook/saved/file-stem.ts';
import { rolesOf } from '#src/people/auth/provider/provider-accounts.ts';

const CHARS = 200_000;
const UNITS = [
  ' ', '\t', '\n', '\r', '\r ', '/', '.', '. ', ',', '"', '"",', "'", "''", '`', '(', ')', '[', ']', '{', '=', ':', '0', 'a', 'a ',
  '-', '--', '/*', '*/', '$', '$$', '$a$', 'W/', '\u0090', '\u009d', '\u001b]', '\u001b[', ';', '?', '*',
  "E'", "\\'", '\\', "'''", "E''\n", '/**/', '#', 'r"', 'e', 'é$',
]; // biome-ignore format: a table

/** Syntaxes that together have every form of quotation and comment. */
const SYNTAXES = { BIGQUERY_SYNTAX, MSSQL_SYNTAX, MYSQL_SYNTAX, POSTGRES_SYNTAX };

const READERS: Readonly<Record<string, (text: string) => unknown>> = {
  'a list of entity tags': (text) => isKnown(text, '"a"'),
  'a content type': (text) => attempt(() => requireJson(`application/json${text}`)),
  'a time': (text) => isSameInstant(`2026-01-01T00:00:00.${text}Z`, '2026-01-01T00:00:00Z'),
  'a host': (text) => parseHost(text),
  'a title': (text) => fileStem(text),
  'a row of roles': (text) => rolesOf([text, `a=${text}`, `${text}=a:b`], new Set()),
  'a statement': (text) => isReading(text),
  ...Object.fromEntries(
    Object.entries(SYNTAXES).map(([name, syntax]) => [
      `a statement with parameters in ${name}`,
      (text: string) => placeParameters(syntax, text, String),
    ]),
  ),
  'text for a terminal': (text) => safeText(text, { colors: true }),
  'a line for a terminal': (text) => safeLine(text),
  'printed text': (text) => new TerminalText('\n', { colors: true }).take(text),
  'printed text for a file': (text) => new FoldedText().take(text),
};

function attempt(act: () => void): void {
  try {
    act();
  } catch {} // a refusal is as good
}

for (const [what, read] of Object.entries(READERS))
  test(`${what} is read in time in proportion to its length`, () => {
    for (const unit of UNITS) {
      const text = unit.repeat(CHARS / unit.length);
      for (const long of [`${text}x`, `"a",${text}!`]) read(long);
    }
  });

test('a statement with many different dollar quotes is read in time in proportion to its length', () => {
  const sql = Array.from({ length: 60_000 }, (_, n) => `$a${n}$ $a${n}$ `).join('');
  assert.equal(placeParameters(POSTGRES_SYNTAX, `${sql}?`, (position) => `:${position}`).sql, `${sql}:1`);
});
