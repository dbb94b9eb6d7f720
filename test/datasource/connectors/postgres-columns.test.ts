/** Packed columns of PostgreSQL: which texts are packed, and as which bytes. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { postgresBatch } from '#src/datasource/connectors/postgres/rows.ts';

const OID = {
  boolean: 16,
  integer: 20,
  text: 25,
  float: 701,
  date: 1082,
  timestamp: 1114,
  timestamptz: 1184,
  decimal: 1700,
};
type Kind = keyof typeof OID;

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

function packed(kinds: readonly Kind[], ...rows: Buffer[]) {
  const fields = kinds.map((kind) => ({ name: kind, dataTypeID: OID[kind] }));
  const batch = postgresBatch(fields, rows, rows.length).packed?.();
  assert.ok(batch);
  return { forms: batch.forms, bytes: Buffer.concat(batch.parts) };
}

/** Returns the number of a packed column with one row; the form when its text is not packed. */
function number(kind: Kind, text: string): unknown {
  const { forms, bytes } = packed([kind], row([text]));
  if (forms[0] === 'rows') return 'rows';
  assert.equal(forms[0], kind);
  if (kind === 'date') return bytes.readInt32LE();
  return kind === 'float' ? bytes.readDoubleLE() : bytes.readBigInt64LE();
}

const micros = (iso: string) => BigInt(Date.parse(iso)) * 1000n;

for (const [kind, text, value] of [
  ['integer', '0', 0n],
  ['integer', '-1', -1n],
  ['integer', '-4294967297', -4_294_967_297n],
  ['integer', '999999999999999', 999_999_999_999_999n],
  ['integer', '9223372036854775807', 2n ** 63n - 1n],
  ['integer', '-9223372036854775808', -(2n ** 63n)],
  ['integer', '9223372036854775808', 'rows'],
  ['integer', '-9223372036854775809', 'rows'],
  ['integer', '', 'rows'],
  ['integer', '-', 'rows'],
  ['integer', '+1', 'rows'],
  ['integer', '1.0', 'rows'],
  ['float', '0.1', 0.1],
  ['float', '-1234.5678901234', -1234.5678901234],
  ['float', '-0', -0],
  ['float', '0.30000000000000004', 0.30000000000000004],
  ['float', '1e-05', 1e-5],
  ['float', '1.7976931348623155e+308', 1.7976931348623155e308],
  ['float', '5e-324', 5e-324],
  ['float', 'NaN', Number.NaN],
  ['float', '-Infinity', Number.NEGATIVE_INFINITY],
  ['float', '1e999', 'rows'],
  ['float', '', 'rows'],
  ['float', '-', 'rows'],
  ['float', '.', 'rows'],
  ['float', '1.', 'rows'],
  ['float', '.5', 'rows'],
  ['float', '1.2.3', 'rows'],
  ['float', '0x10', 'rows'],
  ['float', ' 1', 'rows'],
  ['date', '1970-01-01', 0],
  ['date', '1969-12-31', -1],
  ['date', '2000-02-29', 11_016],
  ['date', '0001-01-01', -719_162],
  ['date', '9999-12-31', 2_932_896],
  ['date', '1900-02-29', 'rows'],
  ['date', '2026-02-30', 'rows'],
  ['date', '2026-13-01', 'rows'],
  ['date', '2026-00-01', 'rows'],
  ['date', '0000-01-01', 'rows'],
  ['date', '2026-1-001', 'rows'],
  ['date', 'infinity', 'rows'],
  ['date', '0044-03-15 BC', 'rows'],
  ['timestamp', '2026-01-02 03:04:05', micros('2026-01-02T03:04:05Z')],
  ['timestamp', '2026-01-02 03:04:05.5', micros('2026-01-02T03:04:05.5Z')],
  ['timestamp', '1969-12-31 23:59:59.999999', -1n],
  ['timestamp', '9999-12-31 23:59:59.999999', micros('+010000-01-01T00:00:00Z') - 1n],
  ['timestamp', '0001-01-01 00:00:00', micros('0001-01-01T00:00:00Z')],
  ['timestamp', '2026-01-02 24:00:00', 'rows'],
  ['timestamp', '2026-01-02 03:60:00', 'rows'],
  ['timestamp', '2026-01-02 03:04:60', 'rows'],
  ['timestamp', '2026-01-02 03:04:05.', 'rows'],
  ['timestamp', '2026-01-02 03:04:05.1234567', 'rows'],
  ['timestamp', '2026-01-02T03:04:05', 'rows'],
  ['timestamp', '2026-01-02 03:04:05 BC', 'rows'],
  ['timestamp', '2026-01-02 03:04:05+00', 'rows'],
  ['timestamptz', '2026-01-02 03:04:05.25+00', micros('2026-01-02T03:04:05.25Z')],
  ['timestamptz', '2026-01-02 03:04:05+01', 'rows'],
  ['timestamptz', '2026-01-02 03:04:05-00', 'rows'],
  ['timestamptz', '2026-01-02 03:04:05+00:30', 'rows'],
  ['timestamptz', '2026-01-02 03:04:05', 'rows'],
  ['timestamptz', 'infinity', 'rows'],
] as const) {
  const what = value === 'rows' ? 'is not packed' : `is packed as ${value}`;
  test(`${kind} ${JSON.stringify(text)} ${what}`, () => {
    assert.deepEqual(number(kind, text), value);
  });
}

test('nulls, booleans and texts of several parts are packed together', () => {
  const parts = [Buffer.concat([row(['1', 't', 'é']), row([null, null, null])]), row(['3', 'f', ''])];
  const fields = (['integer', 'boolean', 'text'] as const).map((kind) => ({
    name: kind,
    dataTypeID: OID[kind],
  }));
  const { forms, parts: arrays } = postgresBatch(fields, parts, 3).packed?.() ?? { forms: [], parts: [] };
  assert.deepEqual(forms, ['integer?', 'boolean?', 'text?']);
  const [nulls, numbers, flags, lengths, text] = arrays.map((one) => Buffer.from(one));
  assert.deepEqual([...(nulls ?? [])], [0, 1, 0]);
  assert.deepEqual([numbers?.readBigInt64LE(0), numbers?.readBigInt64LE(16)], [1n, 3n]);
  assert.deepEqual([...(flags ?? [])], [1, 2, 0]);
  assert.deepEqual(
    [0, 4, 8].map((at) => lengths?.readInt32LE(at)),
    [2, -1, 0],
  );
  assert.equal(text?.toString(), 'é');
});

test('columns that are not packed come as rows of JSON, without the others', () => {
  const { forms, bytes } = packed(
    ['decimal', 'integer', 'text', 'date'],
    row(['1.5', '1', 'a', 'infinity']),
    row([null, '2', 'bc', '2026-01-01']),
  );
  assert.deepEqual(forms, ['rows', 'integer', 'text', 'rows']);
  const json = bytes.subarray(16 + 8 + 3).toString();
  assert.deepEqual(JSON.parse(json), [
    ['1.5', 'infinity'],
    [null, '2026-01-01'],
  ]);
});

test('texts that are not UTF-8 are not packed', () => {
  const { forms, bytes } = packed(['text'], row([Buffer.from([0x61, 0xff, 0x62])]));
  assert.deepEqual(forms, ['rows']);
  assert.deepEqual(JSON.parse(bytes.toString()), [['a\ufffdb']]);
});

test('two texts whose halves of one letter become a letter only together are not packed', () => {
  const { forms } = packed(['text'], row([Buffer.from([0xc3])]), row([Buffer.from([0xa9])]));
  assert.deepEqual(forms, ['rows']);
});

test('a row with too few values or wrong lengths gets nulls, and does not reach into the next row', () => {
  const overlong = row(['a', 'b']);
  overlong.writeInt32BE(1000, 7 + 4 + 1);
  const { forms, bytes } = packed(['text', 'text'], row(['a'], 2), overlong, row(['c', 'd']));
  assert.deepEqual(forms, ['text', 'text?']);
  assert.equal(bytes.subarray(12, 15).toString(), 'aac');
  assert.deepEqual(
    [15, 19, 23].map((at) => bytes.readInt32LE(at)),
    [-1, -1, 1],
  );
});

test('a batch without rows or columns is packed, too', () => {
  assert.deepEqual(packed(['integer', 'decimal']), { forms: ['integer', 'rows'], bytes: Buffer.from('[]') });
  assert.deepEqual(packed([]), { forms: [], bytes: Buffer.alloc(0) });
});
