import assert from 'node:assert/strict';
import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { dirname, join, normalize } from 'node:path';
import test from 'node:test';
import { SETTINGS } from '#src/base/config/settings.ts';
import { CATALOGUE } from '#src/base/errors/errors.ts';
import { FAILURES } from '#src/base/errors/failures.ts';
import { PAGES, withTables } from '#src/start/docs.ts';
import { longSentencesOf, MAX_SENTENCE_WORDS, sentencesOf } from './support/sentences.ts';

const documents = [
  ...readdirSync('.'),
  ...['docs', join('docs', 'decisions')].flatMap((folder) =>
    readdirSync(folder).map((name) => join(folder, name)),
  ),
].filter((name) => name.endsWith('.md'));

const MAX_PARAGRAPH_WORDS = 90;

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
  const long = [
    ...allPages().flatMap((page) => longIn(page, paragraphsOf(readFileSync(page, 'utf8')))),
    ...deployFiles().flatMap((file) => longIn(file, remarksOf(readFileSync(file, 'utf8')))),
  ];
  assert.deepEqual(long, [], 'split each paragraph by topic');

  function longIn(file: string, paragraphs: readonly string[]): string[] {
    return paragraphs
      .filter((paragraph) => wordsOf(paragraph) > MAX_PARAGRAPH_WORDS)
      .map((paragraph) => `${file}: ${paragraph}`);
  }
});

test('no sentence for readers has more than 30 words', () => {
  const settings = Object.values(SETTINGS).map(({ env, description }) => [env, description] as const);
  const errors = Object.entries(CATALOGUE).map(([code, { title }]) => [code, title] as const);
  const long = [
    ...allPages()
      .filter((page) => !page.startsWith(join('docs', 'decisions')))
      .map((page) => [page, textsOf(readFileSync(page, 'utf8'))] as const),
    ...deployFiles().map((file) => [file, remarksOf(readFileSync(file, 'utf8'))] as const),
    ...[...settings, ...errors, ...Object.entries(FAILURES)].map(([name, text]) => [name, [text]] as const),
  ].flatMap(([place, texts]) => texts.flatMap(longSentencesOf).map((sentence) => `${place}: ${sentence}`));
  assert.deepEqual(long, [], `split each sentence, ${MAX_SENTENCE_WORDS} words at most`);
});

test('a sentence ends at its mark, and a piece of code is one word', () => {
  assert.deepEqual(sentencesOf('- **One.** Two `three. Four` [five](six.md). (Seven!) 8.5 e.g.x'), [
    'One.',
    'Two code five.',
    '(Seven!)',
    '8.5 e.g.x',
  ]);
  assert.deepEqual(longSentencesOf('word '.repeat(MAX_SENTENCE_WORDS)), []);
  assert.equal(longSentencesOf(`\`a b\` ${'word '.repeat(MAX_SENTENCE_WORDS)}`).length, 1);
});

test('a paragraph ends at an empty line, a list item, a heading, a table and a code block', () => {
  const page =
    '# A\none\ntwo\n\nthree\n- four\n  five\n1. six\n```sh\nseven\n\n```\neight\n| nine |\n**ten**\n';
  assert.deepEqual(paragraphsOf(page), ['one two', 'three', '- four   five', '1. six', 'eight', '**ten**']);
});

test('the README stays short', () => {
  assert.ok(readFileSync('README.md').length < 25_000);
});

test('the entry of each release in the changelog is short enough to read in some minutes', () => {
  const [, ...releases] = readFileSync('CHANGELOG.md', 'utf8').split(/^## /m);
  for (const release of releases) assert.ok(wordsOf(release) < 1000, release.slice(0, 60));
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

/** Returns the paragraphs, list items and cells of tables of a page. */
function textsOf(page: string): string[] {
  const rows = page.replace(/^```[\s\S]*?^```/gm, '').match(/^\s*\|.*$/gm) ?? [];
  return [...paragraphsOf(page), ...rows.flatMap((row) => row.split(/(?<!\\)\|/))];
}

/** Returns the files for operators, without those that have no remarks. */
function deployFiles(): string[] {
  return readdirSync('deploy', { recursive: true, withFileTypes: true })
    .filter((entry) => entry.isFile())
    .map(({ name, parentPath }) => join(parentPath, name));
}

/**
 * Returns the blocks of comments of a file of `deploy/`, the remarks at the ends of its lines, and its descriptions of alerts and
 * panels.
 */
function remarksOf(file: string): string[] {
  const blocks = file.match(/(?:^[ \t]*#+ .*\n?)+/gm) ?? [];
  const behind = [...file.matchAll(/^[ \t]*[^\s#].*?\s# (.*)$/gm)].map(([, remark]) => remark!);
  const described = [...file.matchAll(/^\s*"?(?:summary|description|title)"?: (.*)$/gm)];
  return [
    ...blocks.map((block) =>
      block
        .replace(/^[ \t]*#+ /gm, '')
        .replaceAll('\n', ' ')
        .trim(),
    ),
    ...behind,
    ...described.map(([, text]) => text!),
  ];
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
