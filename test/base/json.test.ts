import assert from 'node:assert/strict';
import test from 'node:test';
import { atOnce, inSlices } from '#src/base/async/slices.ts';
import { parseTrustedJson } from '#src/base/json/json-parse.ts';
import { findJsonExcess, JsonScan, MAX_MEMBERS, MAX_PIECE_BYTES } from '#src/base/json/json-scan.ts';
import { isShortJson, joinedJson, writeJson } from '#src/base/json/json-write.ts';
import { decodeUtf8, encodeUtf8 } from '#src/base/text/utf8.ts';
import { SeededRandom } from '#test/support/random.ts';

const parse = (text: string) => atOnce(parseTrustedJson(Buffer.from(text)));
const write = (value: unknown) => Buffer.concat(atOnce(writeJson(value))).toString('utf8');

/** Short strings, and strings of several pieces with characters that must not be cut. */
const PARTS = ['a', 'ä', '"', '\\', '\\\\"', '\n', '\u0001', '😀', '\ud800', '\u2028', '0'];
const seeded = new SeededRandom(16);
const random = () => seeded.next();
const pick = <T>(list: readonly T[]): T => list[Math.floor(random() * list.length)]!;

function randomText(): string {
  const length = pick([0, 1, 10, 100, 30_000, 90_000]);
  let text = '';
  while (text.length < length) text += pick(PARTS).repeat(1 + Math.floor(random() * 12));
  return text;
}

function randomValue(depth: number): unknown {
  const kind = Math.floor(random() * (depth > 0 ? 7 : 4));
  if (kind < 2) return randomText();
  if (kind === 2) return pick([0, -1.5, 1e21, 12345678901, 5e-324]);
  if (kind === 3) return pick([true, false, null, [], {}, '']);
  const members = Array.from({ length: Math.floor(random() * 9) }, () => randomValue(depth - 1));
  if (kind === 4) return members;
  return Object.fromEntries(
    members.map((member, i) => [pick(['', 'a,b', '"', '__proto__', `m${i}`]), member]),
  );
}

test('large JSON is parsed and written in pieces with the results of JSON.parse and JSON.stringify', () => {
  for (let round = 0; round < 30; round++) {
    const value = randomValue(4);
    const text = JSON.stringify(value);
    assert.equal(write(value), text);
    assert.deepEqual(parse(text), JSON.parse(text));
    const spaced = JSON.stringify(value, null, '\t ');
    assert.deepEqual(parse(spaced), JSON.parse(spaced));
  }
});

test('members that are undefined are left out of objects, and null in arrays', () => {
  const long = 'x'.repeat(MAX_PIECE_BYTES);
  const value = { a: undefined, b: [undefined, long], c: { d: undefined }, e: long };
  assert.equal(write(value), JSON.stringify(value));
});

test('invalid JSON is refused with a mistake at any place', () => {
  const long = JSON.stringify('x'.repeat(MAX_PIECE_BYTES));
  const many = Array(MAX_PIECE_BYTES).fill('1').join(',');
  const wrong = [
    ...[`[${long}`, `${long}"`, `[${long}]]`, `[${long}}`, `{"a":${long}]`, `[${long},]`, `[,${long}]`],
    ...[`[${long} 1]`, `[1 ${long}]`, `{${long}}`, `{"a" ${long}}`, `{"a":${long},}`, `{"a":${long} "b":1}`],
    ...[`[${many},]`, `[${many},,1]`, `[${many}`, `[${many}] x`, `x[${many}]`, `${long},${long}`],
    ...[
      `["${'\\x'.repeat(MAX_PIECE_BYTES)}"]`,
      `["${'\n'.repeat(MAX_PIECE_BYTES)}"]`,
      `["${'\\'.repeat(MAX_PIECE_BYTES + 1)}"]`,
    ],
  ];
  for (const text of wrong) {
    assert.throws(() => JSON.parse(text), SyntaxError);
    assert.throws(() => parse(text), SyntaxError, `${text.slice(0, 20)}…${text.slice(-20)}`);
  }
});

test('each step of a check reads a bounded part of the JSON, and limits apply to all steps together', () => {
  const bounds = { maxDepth: 3, maxValues: 10, maxMembers: 3, maxDigits: 4, mayHaveLargeNames: false };
  const long = `"${'\\"'.repeat(100_000)}"`;
  const excess = (text: string) => findJsonExcess(Buffer.from(text), bounds);
  assert.equal(excess(`[[[${long},1234]]]`), undefined);
  assert.equal(excess(`[${long},[[[]]]]`), 'depth');
  assert.equal(excess(`[${long},12345]`), 'digits');
  assert.equal(excess(`[${Array(10).fill(long).join(',')}]`), undefined);
  assert.equal(excess(`[${Array(11).fill(long).join(',')}]`), 'values');
  const members = (count: number) => Array.from({ length: count }, (_, i) => `"${i}":${long}`).join(',');
  assert.equal(excess(`[{${members(3)}},{${members(3)}}]`), undefined);
  assert.equal(excess(`{"a":{${members(4)}}}`), 'members');
  assert.equal(excess(`[{},[1,2,3,4]]`), undefined, 'items of a list are no members');
  const named = (bytes: number) => `{"${'n'.repeat(bytes - 2)}" : 1}`;
  assert.equal(excess(named(MAX_PIECE_BYTES)), undefined);
  assert.equal(excess(named(MAX_PIECE_BYTES + 1)), 'name');
  let steps = 0;
  for (const _ of parseTrustedJson(Buffer.from(`[${Array(20).fill(long).join(',')}]`))) steps++;
  assert.ok(steps > 20 * 3, `${steps} steps`);
});

test('short JSON exceeds the same bounds that a scan in steps finds, even if the JSON is broken', () => {
  const bounds = {
    maxDepth: 3,
    maxValues: 5,
    maxMembers: MAX_MEMBERS,
    maxDigits: 4,
    mayHaveLargeNames: false,
  };
  const parts = ['[', ']', '{', '}', ',', '"', '\\', ':', '12', '5', ' ', 'a', 'a'.repeat(70), '\\"'];
  const found = new Map<string | undefined, number>();
  for (let n = 0; n < 5000; n++) {
    let text = '';
    while (random() < 0.95) text += pick(parts);
    const json = Buffer.from(text);
    const scan = new JsonScan(json, bounds);
    while (!scan.advance());
    const excess = findJsonExcess(json, bounds);
    assert.equal(excess, scan.excess, text);
    found.set(excess, (found.get(excess) ?? 0) + 1);
  }
  assert.deepEqual([...found.keys()].sort(), ['depth', 'digits', 'values', undefined]);
});

test('several pieces of long work share the turns, and let other work run between them', async () => {
  let turns = 0;
  let isOver = false;
  const count = () => {
    turns++;
    if (!isOver) setImmediate(count);
  };
  setImmediate(count);
  const work = function* (name: string) {
    for (let step = 0; step < 3; step++) {
      const endMs = performance.now() + 5;
      while (performance.now() < endMs);
      yield;
    }
    return name;
  };
  const names = await Promise.all([inSlices(work('a')), inSlices(work('b'))]);
  isOver = true;
  assert.deepEqual(names, ['a', 'b']);
  assert.ok(turns >= 6, `${turns} turns`);
  const failing = function* () {
    yield;
    throw new Error('it failed');
  };
  await assert.rejects(inSlices(failing()), /it failed/);
});

test('long text becomes UTF-8 in pieces, cut at any place', async () => {
  for (let round = 0; round < 10; round++) {
    const text = randomText() + '😀'.repeat(140_000) + randomText();
    assert.ok((await inSlices(encodeUtf8(text))).equals(Buffer.from(text)));
  }
});

test('the limit of short JSON counts its characters', () => {
  assert.equal(isShortJson({ a: ['x'.repeat(50)] }, 100), true);
  assert.equal(isShortJson({ a: ['x'.repeat(100)] }, 100), false);
  assert.equal(isShortJson(Array(20).fill(0), 100), false);
});

test('UTF-8 becomes text in steps, even if a step cuts a character', () => {
  const text = `\ufeff${'aä€😀'.repeat(100_000)}`;
  const steps = decodeUtf8(Buffer.from(text));
  let count = 0;
  let step = steps.next();
  for (; step.done !== true; step = steps.next()) count++;
  assert.equal(step.value, text);
  assert.ok(count > 5, `${count} steps`);
});

test('the pieces of long JSON and of long UTF-8 are put together in steps', (t) => {
  const concat = t.mock.method(Buffer, 'concat');
  const text = 'ä'.repeat(2 * 2 ** 20);
  const [bytes, json] = [atOnce(encodeUtf8(text)), atOnce(joinedJson([text]))];
  assert.equal(concat.mock.callCount(), 0);
  assert.equal(bytes.toString(), text);
  assert.equal(json.toString(), JSON.stringify([text]));
});

test('megabytes of text without JSON, and of blanks around a value, are not decoded in one piece', (t) => {
  const [blanks, others] = [' \n\t\r'.repeat(100_000), 'ä'.repeat(100_000)];
  let longest = 0;
  const decode = Buffer.prototype.toString;
  t.mock.method(
    Buffer.prototype,
    'toString',
    function (this: Buffer, encoding?: BufferEncoding, start = 0, end = this.length) {
      if (encoding !== 'latin1') longest = Math.max(longest, end - start);
      return decode.call(this, encoding, start, end);
    },
  );
  const large = JSON.stringify(['ä'.repeat(100_000)]);
  assert.equal(parse(`${blanks}"ä"${blanks}`), 'ä');
  assert.equal(parse(`${blanks}${'9'.repeat(100_000)}`), Number.POSITIVE_INFINITY);
  assert.deepEqual(parse(`${blanks}${large}${blanks}`), JSON.parse(large));
  for (const text of [
    others,
    blanks,
    `${others}1`,
    `${others}${large}`,
    `${large}${others}`,
    `\u00a0${blanks}1`,
    `1${others}`,
  ])
    assert.throws(() => parse(text), SyntaxError);
  t.mock.restoreAll();
  assert.ok(longest < 128 * 1024, `${longest} bytes were decoded at once`);
});
