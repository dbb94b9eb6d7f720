// own process: it measures the heap
/** Pages of results that come over HTTP, as hostile and as exact servers send them. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { gzipSync } from 'node:zlib';
import { httpStandIn } from '../http-stand-in.ts';
import type { Owner } from '../listening.ts';
import { ask, probeFixture } from '../probe-fixture.ts';

/** Returns a session with a Trino that sends this text for every statement. */
async function answering(owner: Owner, text: string | Buffer) {
  const answer = () => ({
    headers: Buffer.isBuffer(text) ? { 'content-encoding': 'gzip' } : {},
    body: text,
  });
  const { port } = await httpStandIn(owner, answer, false);
  const connection = { kind: 'trino', catalog: 'c', schema: 's', user: 'u', url: `http://127.0.0.1:${port}` };
  return probeFixture(owner).open(connection);
}

const page = (columns: readonly (readonly [string, string])[], rows: string) =>
  `{"id":"q","columns":${JSON.stringify(columns.map(([name, type]) => ({ name, type })))},"data":${rows}}`;

test('a page of millions of empty lists is refused before it is parsed', async (t) => {
  const lists = page([['a', 'integer']], `[${'[],'.repeat(5_000_000)}[]]`);
  const session = await answering(t, gzipSync(lists, { level: 1 }));
  const before = process.memoryUsage().heapUsed;
  await assert.rejects(ask(session, 'SELECT 1'), { category: 'too_much' });
  assert(process.memoryUsage().heapUsed - before < 50_000_000);
});

test('a map with more members than the limit is refused with an error that names the limit', async (t) => {
  const mapOf = (size: number) =>
    JSON.stringify(Object.fromEntries(Array.from({ length: size }, (_, at) => [`k${at}`, 1])));
  const answer = (size: number) => answering(t, page([['a', 'map(varchar,integer)']], `[[${mapOf(size)}]]`));
  assert.deepEqual((await ask(await answer(30_000), 'SELECT 1')).rows, [[mapOf(30_000)]]);
  await assert.rejects(ask(await answer(30_001), 'SELECT 1'), {
    category: 'too_much',
    message: /^A value of the result is a map or an object with more than 30000 members\./,
  });
});

test('an integer of millions of digits is refused', async (t) => {
  const session = await answering(t, page([['a', 'bigint']], `[["${'9'.repeat(5_000_000)}"]]`));
  await assert.rejects(ask(session, 'SELECT 1'), { category: 'failed' });
});

test('an endless error message for a statement is cut off', async (t) => {
  const error = { errorName: 'SYNTAX_ERROR', message: `Wrong near ${'x'.repeat(5_000_000)}` };
  const session = await answering(t, JSON.stringify({ error }));
  await assert.rejects(ask(session, 'SELECT 1'), { category: 'query', detail: /^Wrong near x{1,10000}…$/ });
});

test('integers of Trino beyond 2⁵³ are exact, even in lists and maps', async (t) => {
  const columns = [
    ['a', 'bigint'],
    ['b', 'array(bigint)'],
    ['c', 'map(varchar,bigint)'],
    ['d', 'varchar'],
    ['e', 'double'],
    ['f', 'bigint'],
  ] as const;
  const row = String.raw`[9007199254740993,[-9223372036854775808],{"k \" 12345678901234567890":9223372036854775807},"9007199254740993",12345678901234567000,12]`;
  const session = await answering(t, page(columns, `[${row}]`));
  assert.deepEqual((await ask(session, 'SELECT 1')).rows, [
    [
      9007199254740993n,
      '[-9223372036854775808]',
      String.raw`{"k \" 12345678901234567890":9223372036854775807}`,
      '9007199254740993',
      12345678901234567000,
      12,
    ],
  ]);
});
