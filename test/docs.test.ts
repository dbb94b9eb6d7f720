import assert from 'node:assert/strict';
import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { dirname, join, normalize } from 'node:path';
import test from 'node:test';
import { PAGES, withTables } from '#src/start/docs.ts';

const documents = [
  ...readdirSync('.'),
  ...['docs', join('docs', 'decisions')].flatMap((folder) =>
    readdirSync(folder).map((name) => join(folder, name)),
  ),
].filter((name) => name.endsWith('.md'));

const MAX_PARAGRAPH_WORDS = 90;

/** The number of longer paragraphs in each file that still has some. A number may only fall. */
const LONG_PARAGRAPHS: Readonly<Record<string, number>> = {};

test('the tables in the documentation match the code', () => {
  for (const page of Object.keys(PAGES)) {
    const text = readFileSync(page, 'utf8');
    assert.equal(text, withTables(page, text), `run \`npm run docs\` for ${page}`);
  }
});

test('every link between documents leads to an existing file and heading', () => {
  const broken: string[] = [];
  for (const document of documents) {
    for (const [, target, anchor] of readFileSync(document, 'utf8').matchAll(
      /\]\((?!\w+:)([^)#\s]*)(?:#([^)]*))?\)/g,
    )) {
      const file = target === '' ? document : normalize(join(dirname(document), target!));
      const isThere = existsSync(file) && (anchor === undefined || anchorsOf(file).has(anchor));
      if (!isThere) broken.push(`${document}: ${target}${anchor === undefined ? '' : `#${anchor}`}`);
    }
  }
  assert.deepEqual(broken, []);
});

test('every file and folder of the project that a document names exists', () => {
  const missing = documents.flatMap((document) =>
    [
      ...readFileSync(document, 'utf8').matchAll(
        /`((?:src|machines|storage|bench|test|docs|deploy)\/[\w./-]+)`/g,
      ),
    ].flatMap(([, path]) => (existsSync(path!) ? [] : [`${document}: ${path}`])),
  );
  assert.deepEqual(missing, []);
});

test('no paragraph has more than 90 words', () => {
  const long = allPages().flatMap((page) => {
    const { length } = paragraphsOf(readFileSync(page, 'utf8')).filter(
      (paragraph) => wordsOf(paragraph) > MAX_PARAGRAPH_WORDS,
    );
    return length === 0 ? [] : [[page, length] as const];
  });
  assert.deepEqual(
    Object.fromEntries(long),
    LONG_PARAGRAPHS,
    'split a new long paragraph by topic; lower the number in LONG_PARAGRAPHS when there are fewer',
  );
});

test('a paragraph ends at an empty line, a list item, a heading, a table and a code block', () => {
  const page =
    '# A\none\ntwo\n\nthree\n- four\n  five\n1. six\n```sh\nseven\n\n```\neight\n| nine |\n**ten**\n';
  assert.deepEqual(paragraphsOf(page), ['one two', 'three', '- four   five', '1. six', 'eight', '**ten**']);
});

test('the README stays short', () => {
  assert.ok(readFileSync('README.md').length < 25_000);
});

/** Returns the Markdown files of the project, without the results of measurements, which a program writes. */
function allPages(): string[] {
  const inFolders = ['bench', 'deploy', 'docs', 'src', 'test'].flatMap((folder) =>
    readdirSync(folder, { recursive: true, encoding: 'utf8' }).map((name) => join(folder, name)),
  );
  return [...readdirSync('.'), ...inFolders].filter(
    (name) => name.endsWith('.md') && name !== join('bench', 'RESULTS.md'),
  );
}

/** Returns the paragraphs and list items of a page, each as one line, without headings, tables and code blocks. */
function paragraphsOf(page: string): string[] {
  const paragraphs = [''];
  let isCode = false;
  for (const line of page.split('\n')) {
    const isFence = line.trimStart().startsWith('```');
    if (isFence) isCode = !isCode;
    if (isFence || isCode || /^\s*(?:$|[#|])/.test(line)) paragraphs.push('');
    else if (/^\s*(?:[-*]|\d+\.) /.test(line)) paragraphs.push(line);
    else paragraphs.push(`${paragraphs.pop()} ${line}`);
  }
  return paragraphs.map((paragraph) => paragraph.trim()).filter((paragraph) => paragraph !== '');
}

function wordsOf(paragraph: string): number {
  return paragraph.split(/\s+/).length;
}

/** The anchors that GitHub gives to the headings of a page. */
function anchorsOf(file: string): Set<string> {
  const headings = readFileSync(file, 'utf8').matchAll(/^#+ (.*)$/gm);
  return new Set(
    [...headings].map(([, heading]) =>
      heading!
        .toLowerCase()
        .replace(/[^\w\- ]/g, '')
        .replaceAll(' ', '-'),
    ),
  );
}
