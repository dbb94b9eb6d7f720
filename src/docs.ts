/** The tables in the README that are made from the code: `npm run docs` writes them, a test holds them. */
import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { settingsTable } from './config/report.ts';
import { CATALOGUE } from './core/errors.ts';
import { FAILURES } from './core/failures.ts';
import { PACKAGE_ROOT } from './core/package-root.ts';

/** Markdown by the name of the markers it stands between: `<!-- name -->` and `<!-- /name -->`. */
export const TABLES: Readonly<Record<string, () => string>> = {
  settings: settingsTable,
  errors: errorTable,
  failures: failureTable,
};

function errorTable(): string {
  const rows = Object.entries(CATALOGUE).map(
    ([code, { status, title }]) => `| ${status} | \`${code}\` | ${title} |`,
  );
  return ['| Status | Code | Meaning |', '| --- | --- | --- |', ...rows, ''].join('\n');
}

function failureTable(): string {
  const rows = Object.entries(FAILURES).map(([code, meaning]) => `| \`${code}\` | ${meaning} |`);
  return ['| Code | Meaning |', '| --- | --- |', ...rows, ''].join('\n');
}

/** `text` with every table in its place. Throws when a marker is missing. */
export function withTables(text: string): string {
  return Object.entries(TABLES).reduce((result, [name, table]) => {
    const [open, close] = [`<!-- ${name} -->`, `<!-- /${name} -->`];
    const [from, to] = [result.indexOf(open), result.indexOf(close)];
    if (from === -1 || to === -1) throw new Error(`The README has no markers for ${name}.`);
    return `${result.slice(0, from)}${open}\n\n${table()}\n${result.slice(to)}`;
  }, text);
}

if (process.argv[1] === fileURLToPath(import.meta.url)) {
  const readme = join(PACKAGE_ROOT, 'README.md');
  writeFileSync(readme, withTables(readFileSync(readme, 'utf8')));
}
