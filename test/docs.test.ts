import assert from 'node:assert/strict';
import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { dirname, join, normalize } from 'node:path';
import test from 'node:test';
import { PAGES, withTables } from '#src/docs.ts';

const documents = [
  ...readdirSync('.'),
  ...['docs', join('docs', 'decisions')].flatMap((folder) =>
    readdirSync(folder).map((name) => join(folder, name)),
  ),
].filter((name) => name.endsWith('.md'));

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

test('the README stays short', () => {
  assert.ok(readFileSync('README.md').length < 25_000);
});

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
