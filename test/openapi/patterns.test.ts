/** The patterns in published schemas, as clients in other languages read them. */
import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import { join } from 'node:path';
import test from 'node:test';
import { PACKAGE_ROOT } from '#src/base/install/package-root.ts';
import { connectionSchemaDocument } from '#src/datasource/connectors/connection-schema.ts';
import { pythonOfTests, startServer } from '#test/support/server-fixture.ts';
import { everyObject, readDocument } from './real-document.ts';

/** Constructs that ECMAScript, Python's `re`, RE2 and Java read alike: no look-around, no `\p`, `\s`, `\w` or `\u`. */
const SHARED = new RegExp(
  `^(?:${[
    String.raw`[\^$|)]`,
    String.raw`\((?!\?)`,
    '[*+?](?![*+?])',
    String.raw`\{\d+(?:,\d*)?\}`,
    String.raw`\[\^?(?:\\x[0-9a-f]{2}|\\[^A-Za-z0-9\s]|[^\\\[\]&])+\]`,
    String.raw`\\x[0-9a-f]{2}`,
    String.raw`\\[^A-Za-z0-9\s]`,
    String.raw`[^\\\[\]{}()*+?^$|.]`,
  ].join('|')})*$`,
);

const TEXTS = [
  ...['', 'a', 'abc-1', '__scratch__', 'A_1', '1a', 'a b', ' ', '.', '..', 'a.b', 'ä', '日本', '😀', 'é'],
  ...[
    '\u0000',
    'a\tb',
    '\u001f',
    '\u007f',
    '\u0085',
    '\u009f',
    '\u00a0',
    '\u2028',
    '\ufeff',
    '-',
    '[::1]',
    '::1',
  ],
  ...['db.example.com', 'a/b', 'a:1', 'a@b', '[', ']', '^', '`', '{', '~', ',', '$', '"', '\\', '#', '!'],
  ...[
    'http://h',
    'https://h:1/',
    'https://h/x',
    'https://h\u00a0/',
    'https://a b',
    'user:ada',
    'role:viewer',
  ],
  ...['-----BEGIN PRIVATE KEY-----', ' \t-----BEGIN RSA PRIVATE KEY-----', 'x-----BEGIN CERTIFICATE-----'],
];

const server = await startServer(test);
const patterns = new Set<string>();
for (const schemas of [await readDocument(server), connectionSchemaDocument])
  everyObject(schemas, ({ pattern }) => {
    if (typeof pattern === 'string') patterns.add(pattern);
  });

test('patterns use the common subset of ECMAScript, Python, RE2 and Java', () => {
  assert.ok(patterns.size >= 8, 'patterns were found');
  for (const pattern of patterns) assert.match(pattern, SHARED);
  for (const foreign of ['^(?!a)b$', String.raw`^\P{Cc}*$`, String.raw`\s`, String.raw`\u0000`, 'a++', '.'])
    assert.doesNotMatch(foreign, SHARED);
});

test("Python's re and RE2 accept every pattern, and match exactly the texts that ECMAScript matches", () => {
  const program = `
import json, re, sys
import pyarrow, pyarrow.compute
patterns, texts = json.load(sys.stdin)
of_re = [[re.search(pattern, text) is not None for text in texts] for pattern in patterns]
of_re2 = [pyarrow.compute.match_substring_regex(pyarrow.array(texts), pattern).to_pylist() for pattern in patterns]
json.dump([of_re, of_re2], sys.stdout)
`;
  const python = pythonOfTests().TROUPE_PYTHON ?? join(PACKAGE_ROOT, '.venv/bin/python');
  const { stdout, stderr } = spawnSync(python, ['-c', program], {
    input: JSON.stringify([[...patterns], TEXTS]),
    encoding: 'utf8',
  });
  assert.equal(stderr, '');
  const ours = [...patterns].map((pattern) => TEXTS.map((text) => new RegExp(pattern, 'u').test(text)));
  assert.deepEqual(JSON.parse(stdout), [ours, ours]);
});
