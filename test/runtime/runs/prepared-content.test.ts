import assert from 'node:assert/strict';
import { randomBytes } from 'node:crypto';
import test from 'node:test';
import { atOnce } from '#src/base/async/slices.ts';
import { holdContent, OutputContents, prepareContent } from '#src/runtime/runs/output-content.ts';
import { encodeRecord } from '#storage/codec.ts';
import { blobRecords } from '#storage/records/blobs.ts';

const LONG = 'a "line" with ä and 😀\n'.repeat(30_000);
const IMAGE = randomBytes(600_001).toString('base64');

for (const [name, text] of Object.entries({
  'a text': LONG,
  'a text with halves of characters': '\ud800\udc00\ud800'.repeat(100_000),
  'an image': `data:image/png;base64,${IMAGE}`,
  'an image whose base64 has lines': `data:image/png;base64,${IMAGE.replace(/.{76}/g, '$&\n')}`,
  'an image that goes on after its end': `data:image/png;base64,${IMAGE}${IMAGE}`,
}))
  test(`the prepared content of ${name} equals the content encoded at once`, () => {
    const output = { data: text };
    const expected = new OutputContents().of(text);
    using _prepared = atOnce(prepareContent(text)) ?? { [Symbol.dispose]: () => undefined };
    holdContent(output);
    const contents = new OutputContents();
    contents.take(output);
    const { record, bytes, ...content } = contents.of(text);
    assert.deepEqual(
      { ...content, bytes: Buffer.from(bytes) },
      { ...expected, bytes: Buffer.from(expected.bytes) },
    );
    if (record !== undefined)
      assert.ok(Buffer.from(encodeRecord(blobRecords, Uint8Array.from(bytes))).equals(record));
    assert.equal(record !== undefined, !name.includes('lines') && !name.includes('goes on'));
  });

test('a content is prepared in small steps, and is forgotten unless an output is received with it', () => {
  const steps = prepareContent(LONG);
  let count = 0;
  let step = steps.next();
  for (; step.done !== true; step = steps.next()) count++;
  assert.ok(count > 4);
  step.value?.[Symbol.dispose]();
  const output = { data: LONG };
  holdContent(output);
  const contents = new OutputContents();
  contents.take(output);
  assert.equal(contents.known(LONG), undefined);
});

test('short outputs and outputs that are not text are not prepared', () => {
  for (const data of ['short', { json: LONG }, null, 1])
    assert.equal(atOnce(prepareContent(data)), undefined);
});
