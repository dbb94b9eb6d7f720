/** The tables in the documentation that are made from the code: `npm run docs` writes them, a test holds them. */
import { readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join, parse } from 'node:path';
import { fileURLToPath } from 'node:url';
import { settingsTable } from '#src/base/config/report.ts';
import { CATALOGUE } from '#src/base/errors/errors.ts';
import { FAILURES } from '#src/base/errors/failures.ts';
import { PACKAGE_ROOT } from '#src/base/install/package-root.ts';

/** For each page, the generated parts. The key names the markers around the part: `<!-- name -->` and `<!-- /name -->`. */
export const PAGES: Readonly<Record<string, Readonly<Record<string, () => string>>>> = {
  'docs/settings.md': { settings: settingsTable },
  'docs/api.md': { errors: errorTable, failures: failureTable },
  'SECURITY.md': { changes: changeTable },
  'ARCHITECTURE.md': { files: fileTable },
};

const CHANGES = { mode: 'Modes', owner: 'Owners', times: 'Times' };

/** Returns which system calls change files, as the kernel host's `modes.py` lists them. Throws when that has another form. */
function changeTable(): string {
  const source = readFileSync(join(PACKAGE_ROOT, 'src/confined/python/confinement/modes.py'), 'utf8');
  const block = (name: string) => {
    const found = new RegExp(`^${name} = [({]\n([^]*?)^[)}]`, 'm').exec(source)?.[1];
    if (found === undefined) throw new Error(`modes.py has no ${name}.`);
    return found;
  };
  const code = (names: Iterable<RegExpMatchArray>) =>
    Array.from(names, (name) => `\`${name[1]}\``).join(', ');
  const decided = Object.entries(CHANGES).map(([kind, title]) => {
    const names = block('DECIDED').matchAll(new RegExp(`"(\\w+)": Call\\("${kind}"`, 'g'));
    return `| ${title} | ${code(names)} | decided: made below the folders that the kernel may write, else \`EPERM\` |`;
  });
  return [
    '| What | System calls | Outcome |',
    '| --- | --- | --- |',
    ...decided,
    '| Set-user-id and set-group-id bits | the calls for modes | refused everywhere with `EPERM` |',
    `| Extended attributes, access lists, flags | ${code(block('REFUSED').matchAll(/"(\w+)"/g))} | refused everywhere with \`EOPNOTSUPP\` |`,
    `| Flags by descriptor | \`ioctl\` with ${code(block('REFUSED_IOCTLS').matchAll(/"(\w+)":/g))} | refused everywhere with \`EPERM\` |`,
    '',
  ].join('\n');
}

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

const SOURCE_FOLDERS = ['machines', 'storage', 'src'];
const SOURCE_FILE = /\.(ts|tsx|mjs|py)$/;
/** Files of a package of Python that say nothing. */
const SILENT_FILE = '__init__.py';

/** Returns the names of all source files, by folder. Throws when there is no source beside the build. */
function fileTable(): string {
  const rows = SOURCE_FOLDERS.flatMap((folder) => fileRows(folder));
  return ['| folder | files |', '| --- | --- |', ...rows, ''].join('\n');
}

function fileRows(folder: string): string[] {
  const entries = readdirSync(join(PACKAGE_ROOT, folder), { withFileTypes: true });
  const names = entries
    .filter((entry) => entry.isFile() && SOURCE_FILE.test(entry.name) && entry.name !== SILENT_FILE)
    .map((entry) => parse(entry.name).name)
    .sort();
  const inner = entries
    .filter((entry) => entry.isDirectory() && !entry.name.startsWith('__'))
    .map((entry) => entry.name);
  return [
    ...(names.length > 0 ? [`| \`${folder}/\` | \`${names.join(' ')}\` |`] : []),
    ...inner.sort().flatMap((name) => fileRows(`${folder}/${name}`)),
  ];
}

/** Returns the text of a page of `PAGES` with every table in its place. Throws when a marker is missing. */
export function withTables(page: string, text: string): string {
  return Object.entries(PAGES[page] ?? {}).reduce((result, [name, table]) => {
    const [open, close] = [`<!-- ${name} -->`, `<!-- /${name} -->`];
    const [from, to] = [result.indexOf(open), result.indexOf(close)];
    if (from === -1 || to === -1) throw new Error(`${page} has no markers for ${name}.`);
    return `${result.slice(0, from)}${open}\n\n${table()}\n${result.slice(to)}`;
  }, text);
}

if (process.argv[1] === fileURLToPath(import.meta.url)) {
  for (const page of Object.keys(PAGES)) {
    const file = join(PACKAGE_ROOT, page);
    writeFileSync(file, withTables(page, readFileSync(file, 'utf8')));
  }
}
