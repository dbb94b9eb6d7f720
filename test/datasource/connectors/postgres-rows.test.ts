import assert from 'node:assert/strict';
import { test } from 'node:test';
import { postgresBatch } from '#src/datasource/connectors/postgres/rows.ts';

const OID = { text: 25, integer: 20, float: 701, boolean: 16, bytes: 17, timestamptz: 1184 };

/**
 * Returns a row in the form in which a server sends it; `counted` is the number of values that the
 * message claims to have.
 */
function row(values: readonly (string | Buffer | null)[], counted = values.length): Buffer {
  const parts = values.flatMap((value) => {
    const length = Buffer.alloc(4);
    length.writeInt32BE(value === null ? -1 : Buffer.byteLength(value));
    return value === null ? [length] : [length, Buffer.from(value)];
  });
  const head = Buffer.alloc(7, 'D');
  head.writeUInt32BE(6 + Buffer.concat(parts).length, 1);
  head.writeUInt16BE(counted, 5);
  return Buffer.concat([head, ...parts]);
}

function jsonOf(kinds: readonly (keyof typeof OID)[], ...parts: Buffer[]): unknown {
  const fields = kinds.map((kind) => ({ name: kind, dataTypeID: OID[kind] }));
  return JSON.parse(Buffer.from(postgresBatch(fields, parts, parts.length).json?.() ?? []).toString('utf8'));
}

for (const [kind, sent, json] of [
  ['text', 'é "quoted" \\ and \n\t\0\x1f', 'é "quoted" \\ and \n\t\0\x1f'],
  ['text', '', ''],
  ['text', null, null],
  ['integer', '-42', -42],
  ['float', '1e-05', 1e-5],
  ['float', 'NaN', 'NaN'],
  ['float', '-Infinity', '-Infinity'],
  ['boolean', 't', true],
  ['boolean', 'f', false],
  ['bytes', '\\x00ff10', 'AP8Q'],
  ['bytes', '\\x', ''],
  ['timestamptz', '2026-01-02 03:04:05.5+00', '2026-01-02 03:04:05.5+00:00'],
  ['timestamptz', '2026-01-02 03:04:05-03:30', '2026-01-02 03:04:05-03:30'],
] as const) {
  test(`${kind} ${JSON.stringify(sent)} becomes ${JSON.stringify(json)}`, () => {
    assert.deepEqual(jsonOf([kind], row([sent])), [[json]]);
  });
}

test('whole numbers keep every digit', () => {
  const { json } = postgresBatch([{ name: 'n', dataTypeID: OID.integer }], [row(['9223372036854775807'])], 1);
  assert.equal(Buffer.from(json?.() ?? []).toString('utf8'), '[[9223372036854775807]]');
});

test('rows of several parts become one list, with the same values as their cells', () => {
  const parts = [Buffer.concat([row(['1', 'a']), row([null, 'b'])]), row(['3', null])];
  const batch = postgresBatch(
    [
      { name: 'n', dataTypeID: OID.integer },
      { name: 't', dataTypeID: OID.text },
    ],
    parts,
    3,
  );
  const rows = [
    [1, 'a'],
    [null, 'b'],
    [3, null],
  ];
  assert.deepEqual([batch.rows, jsonOf(['integer', 'text'], ...parts)], [rows, rows]);
});

test('an invalid number stays text', () => {
  for (const text of ['1],[2', '"', '', '+1', '0x10']) {
    assert.deepEqual(jsonOf(['integer', 'float'], row([text, text])), [[text, text]]);
  }
});

test('bytes that are not UTF-8 become replacement characters', () => {
  assert.deepEqual(jsonOf(['text'], row([Buffer.from([0x61, 0xff, 0x62])])), [['a\ufffdb']]);
});

test('a row with too few values or wrong lengths gets nulls, and does not reach into the next row', () => {
  const short = row(['a'], 2);
  const overlong = row(['a', 'b']);
  overlong.writeInt32BE(1000, 7 + 4 + 1);
  const next = row(['c', 'd']);
  assert.deepEqual(jsonOf(['text', 'text'], short, overlong, next), [
    ['a', null],
    ['a', null],
    ['c', 'd'],
  ]);
});
