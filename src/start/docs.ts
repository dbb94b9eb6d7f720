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
  'ARCHITECTURE.md': { files: nameTable },
  'docs/files.md': { files: fileTable },
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
function nameTable(): string {
  const rows = foldersBelow(SOURCE_FOLDERS).map(
    ({ folder, names }) => `| \`${folder}/\` | \`${names.map((name) => parse(name).name).join(' ')}\` |`,
  );
  return ['| folder | files |', '| --- | --- |', ...rows, ''].join('\n');
}

/** Returns all source files by folder, each with the beginning of its comment. */
function fileTable(): string {
  const rows = foldersBelow(SOURCE_FOLDERS).flatMap(({ folder, names }) => [
    `| **\`${folder}/\`** | |`,
    ...names.map((name) => {
      const source = readFileSync(join(PACKAGE_ROOT, folder, name), 'utf8');
      return `| \`${name}\` | ${subjectOf(name, source)} |`;
    }),
  ]);
  return ['| file | what it is about |', '| --- | --- |', ...rows, ''].join('\n');
}

/** Returns these folders and those below them with the names of their source files, without folders that have none. */
function foldersBelow(folders: readonly string[]): { readonly folder: string; readonly names: string[] }[] {
  return folders.flatMap((folder) => {
    const entries = readdirSync(join(PACKAGE_ROOT, folder), { withFileTypes: true });
    const names = entries
      .filter((entry) => entry.isFile() && SOURCE_FILE.test(entry.name) && entry.name !== SILENT_FILE)
      .map((entry) => entry.name)
      .sort();
    const inner = entries
      .filter((entry) => entry.isDirectory() && !entry.name.startsWith('__'))
      .map((entry) => `${folder}/${entry.name}`);
    return [...(names.length > 0 ? [{ folder, names }] : []), ...foldersBelow(inner.sort())];
  });
}

/** The comments that may say what a file of Python or TypeScript is about, the best one first. */
const PYTHON_SUBJECTS = [/^(?:#.*\n|\s)*"""([\s\S]*?)"""/];
const SUBJECTS = [
  /^(?:#!.*\n)?\s*\/\*\*([\s\S]*?)\*\//,
  /\/\*\*((?:(?!\*\/)[\s\S])*?)\*\/\s*export (?:default )?(?:abstract |async )*(?:class|function)/,
  /\/\*\*((?:(?!\*\/)[\s\S])*?)\*\/\s*export /,
];
const MAX_SUBJECT_CHARS = 120;

/** Returns the beginning of the comment that says what a file is about, as a cell of a table; an empty text when there is none. */
function subjectOf(name: string, source: string): string {
  const patterns = name.endsWith('.py') ? PYTHON_SUBJECTS : SUBJECTS;
  const comment = patterns.map((pattern) => pattern.exec(source)?.[1]).find((found) => found !== undefined);
  const text = (comment ?? '')
    .replace(/^[ \t]*\* ?/gm, '')
    .replace(/\s+/g, ' ')
    .trim();
  return beginningOf(text).replace(/[|<]/g, '\\$&');
}

/** Returns the whole sentences at the beginning of a text that fit; of a longer first sentence the words that fit. */
function beginningOf(text: string): string {
  if (text.length <= MAX_SUBJECT_CHARS) return text.replace(/[.:]$/, '');
  const end = text.lastIndexOf('. ', MAX_SUBJECT_CHARS);
  if (end > 0) return text.slice(0, end);
  return `${text.slice(0, text.lastIndexOf(' ', MAX_SUBJECT_CHARS))} …`;
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
