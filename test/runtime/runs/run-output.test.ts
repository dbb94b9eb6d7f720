import assert from 'node:assert/strict';
import { createHash } from 'node:crypto';
import test from 'node:test';
import type { Output } from '#src/contract/wire/output.ts';
import {
  MAX_DESCRIBED_TOTAL_BYTES,
  MAX_INLINE_BYTES,
  MAX_INLINE_TOTAL_BYTES,
  OutputShelf,
  type RawOutput,
} from '#src/runtime/runs/run-output.ts';

const PNG = Buffer.from('89504e470d0a1a0a', 'hex');

test('a cell without a value has no outputs', () => {
  const shelf = new OutputShelf();
  assert.deepEqual([shelf.shelve(null), shelf.shelve(text('')), shelf.assetParts()], [[], [], []]);
  assert.deepEqual(shelf.shelve({ mimetype: 'text/html', data: '' }), [{ mimetype: 'text/html', data: '' }]);
});

test('an output is stored in the record up to the limit, and one byte more makes it an asset', () => {
  const shelf = new OutputShelf();
  const fits = 'é'.repeat(MAX_INLINE_BYTES / 2);
  assert.deepEqual(shelf.shelve(text(fits)), [text(fits)]);
  assert.deepEqual(assetOf(shelf, shelf.shelve(text(`${fits}!`))), {
    mimetype: 'text/plain',
    text: `${fits}!`,
  });
});

test('an object has the size of its JSON, and is stored as an asset in that form', () => {
  const data = { rows: 'r'.repeat(MAX_INLINE_BYTES) };
  const shelf = new OutputShelf();
  const placed = shelf.shelve({ mimetype: 'application/json', data });
  assert.deepEqual(assetOf(shelf, placed), { mimetype: 'application/json', text: JSON.stringify(data) });
  assert.deepEqual(shelf.shelve({ mimetype: 'application/json', data: { rows: 1 } }), [
    { mimetype: 'application/json', data: { rows: 1 } },
  ]);
});

test('when a record is full, every further output beyond the limit is an asset', () => {
  const shelf = new OutputShelf();
  const full = MAX_INLINE_TOTAL_BYTES / MAX_INLINE_BYTES;
  for (let i = 0; i < full - 1; i++) shelf.shelve(text('x'.repeat(MAX_INLINE_BYTES)));
  shelf.shelve(text('x'.repeat(MAX_INLINE_BYTES - 2)));
  assert.equal(shelf.assets.size, 0);
  assert.ok('assetId' in shelf.shelve(text('abc'))[0]!);
  assert.deepEqual(shelf.shelve(text('ab')), [text('ab')]);
  assert.ok('assetId' in shelf.shelve(text('a'))[0]!);
});

test('a bundle becomes one output for each of its types, whether it is an object or text', () => {
  const bundle = { 'text/html': '<b>1</b>', 'text/plain': '1', __metadata__: { width: 3 } };
  const outputs = [
    { mimetype: 'text/html', data: '<b>1</b>' },
    { mimetype: 'text/plain', data: '1' },
  ];
  const mimetype = 'application/vnd.marimo+mimebundle';
  for (const data of [bundle, JSON.stringify(bundle)]) {
    assert.deepEqual(new OutputShelf().shelve({ mimetype, data }), outputs);
  }
  for (const data of ['{oops', '[1]', 'null']) {
    assert.deepEqual(new OutputShelf().shelve({ mimetype, data }), [{ mimetype, data }]);
  }
});

test('an output that is an asset keeps its text and table in the record, until the record is full', () => {
  const shelf = new OutputShelf();
  const table = { columns: [], rows: [], rowCount: 0, columnCount: 0 };
  const large = { mimetype: 'text/html', data: 'x'.repeat(MAX_INLINE_BYTES + 1), text: 'words', table };
  const [placed] = shelf.shelve(large);
  assert.deepEqual([placed?.text, placed?.table, 'data' in placed!], ['words', table, false]);
  const filling = shelf.shelve({ ...text('1'), text: 'x'.repeat(MAX_DESCRIBED_TOTAL_BYTES - 100) });
  assert.equal(filling[0]?.text?.length, MAX_DESCRIBED_TOTAL_BYTES - 100);
  assert.deepEqual(shelf.shelve({ ...text('1'), text: 'y'.repeat(100) }), [text('1')]);
});

test('a large data URL is stored as the bytes that it encodes', () => {
  const bytes = Buffer.concat([PNG, Buffer.alloc(MAX_INLINE_BYTES)]);
  const url = `data:image/png;base64,${bytes.toString('base64')}`;
  const shelf = new OutputShelf();
  const placed = shelf.shelve({ mimetype: 'image/png', data: url });
  const [assetId, asset] = [...shelf.assets][0]!;
  assert.deepEqual(placed, [{ mimetype: 'image/png', assetId }]);
  assert.deepEqual(Buffer.from(asset.bytes), bytes);
  assert.deepEqual(shelf.assetParts(), [
    {
      type: 'asset',
      assetId,
      mimetype: 'image/png',
      bytes: bytes.byteLength,
      sha256: createHash('sha256').update(bytes).digest('hex'),
    },
  ]);
});

test('a small data URL stays unchanged, and other text is stored as text', () => {
  const url = `data:image/png;base64,${PNG.toString('base64')}`;
  assert.deepEqual(new OutputShelf().shelve({ mimetype: 'image/png', data: url }), [
    { mimetype: 'image/png', data: url },
  ]);
  for (const lead of ['data:text/plain,', 'see data:image/png;base64,', 'data:a,b;base64,']) {
    const words = lead + 'A'.repeat(MAX_INLINE_BYTES);
    const shelf = new OutputShelf();
    assert.deepEqual(assetOf(shelf, shelf.shelve(text(words))), { mimetype: 'text/plain', text: words });
  }
});

function text(data: string): RawOutput {
  return { mimetype: 'text/plain', data };
}

/** Returns the asset of the only output in `placed`. */
function assetOf(shelf: OutputShelf, placed: readonly Output[]) {
  const [output, ...others] = placed;
  assert.deepEqual(others, []);
  assert.ok(output?.assetId !== undefined);
  const { assetId } = output;
  const [, asset] = [...shelf.assets].find(([id]) => id === assetId) ?? [];
  assert.ok(asset !== undefined);
  assert.equal(asset.mimetype, output.mimetype);
  return { mimetype: asset.mimetype, text: Buffer.from(asset.bytes).toString() };
}
