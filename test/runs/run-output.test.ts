import assert from 'node:assert/strict';
import { createHash } from 'node:crypto';
import test from 'node:test';
import {
  INLINE_LIMIT,
  INLINE_TOTAL_LIMIT,
  OutputShelf,
  type RawOutput,
  type ShownOutput,
} from '#src/runs/run-output.ts';

const PNG = Buffer.from('89504e470d0a1a0a', 'hex');

test('a cell without a value has no outputs', () => {
  const shelf = new OutputShelf();
  assert.deepEqual([shelf.shelve(null), shelf.shelve(text('')), shelf.assetParts()], [[], [], []]);
  assert.deepEqual(shelf.shelve({ mimetype: 'text/html', data: '' }), [{ mimetype: 'text/html', data: '' }]);
});

test('an output stands in the record up to the limit, and is an asset one byte above it', () => {
  const shelf = new OutputShelf();
  const fits = 'é'.repeat(INLINE_LIMIT / 2);
  assert.deepEqual(shelf.shelve(text(fits)), [text(fits)]);
  assert.deepEqual(assetOf(shelf, shelf.shelve(text(`${fits}!`))), {
    mimetype: 'text/plain',
    text: `${fits}!`,
  });
});

test('an object is measured, and kept as an asset, as its JSON', () => {
  const data = { rows: 'r'.repeat(INLINE_LIMIT) };
  const shelf = new OutputShelf();
  const placed = shelf.shelve({ mimetype: 'application/json', data });
  assert.deepEqual(assetOf(shelf, placed), { mimetype: 'application/json', text: JSON.stringify(data) });
  assert.deepEqual(shelf.shelve({ mimetype: 'application/json', data: { rows: 1 } }), [
    { mimetype: 'application/json', data: { rows: 1 } },
  ]);
});

test('once a record has its fill every further output that would exceed it is an asset', () => {
  const shelf = new OutputShelf();
  const full = INLINE_TOTAL_LIMIT / INLINE_LIMIT;
  for (let i = 0; i < full - 1; i++) shelf.shelve(text('x'.repeat(INLINE_LIMIT)));
  shelf.shelve(text('x'.repeat(INLINE_LIMIT - 2)));
  assert.equal(shelf.assets.size, 0);
  assert.ok('assetId' in shelf.shelve(text('abc'))[0]!);
  assert.deepEqual(shelf.shelve(text('ab')), [text('ab')]);
  assert.ok('assetId' in shelf.shelve(text('a'))[0]!);
});

test('a bundle is one output for each of its types, as an object or as text', () => {
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

test('a large data URL is kept as the bytes it stands for', () => {
  const bytes = Buffer.concat([PNG, Buffer.alloc(INLINE_LIMIT)]);
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

test('a small data URL stays what it is, and text that is none is kept as text', () => {
  const url = `data:image/png;base64,${PNG.toString('base64')}`;
  assert.deepEqual(new OutputShelf().shelve({ mimetype: 'image/png', data: url }), [
    { mimetype: 'image/png', data: url },
  ]);
  for (const lead of ['data:text/plain,', 'see data:image/png;base64,', 'data:a,b;base64,']) {
    const words = lead + 'A'.repeat(INLINE_LIMIT);
    const shelf = new OutputShelf();
    assert.deepEqual(assetOf(shelf, shelf.shelve(text(words))), { mimetype: 'text/plain', text: words });
  }
});

function text(data: string): RawOutput {
  return { mimetype: 'text/plain', data };
}

/** The asset that the only one of `placed` names. */
function assetOf(shelf: OutputShelf, placed: readonly ShownOutput[]) {
  const [output, ...others] = placed;
  assert.deepEqual(others, []);
  assert.ok(output !== undefined && 'assetId' in output);
  const asset = shelf.assets.get(output.assetId);
  assert.ok(asset !== undefined);
  assert.equal(asset.mimetype, output.mimetype);
  return { mimetype: asset.mimetype, text: Buffer.from(asset.bytes).toString() };
}
