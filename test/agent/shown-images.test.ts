import assert from 'node:assert/strict';
import test from 'node:test';
import { compactEntries } from '#src/agent/compaction.ts';
import type { StoredEntry } from '#src/agent/entry.ts';
import { MAX_SHOWN_IMAGE_BYTES, MAX_SHOWN_IMAGES, messagesOf } from '#src/agent/messages.ts';
import { MAX_OUTPUT_IMAGES, shortened } from '#src/agent/tools/tool.ts';
import type { AssetId, EntryId } from '#src/base/ids.ts';
import type { EntryPart } from '#src/contract/wire/agent.ts';

const entry = (role: 'user' | 'assistant' | 'tool', part: EntryPart): StoredEntry => ({
  entry: { id: 'ent_1' as EntryId, role, content: [part], runId: null, createdAt: '' },
  model: null,
  provider: [],
});

/** A prompt, and for each number a call whose result shows that many pictures. */
const history = (...pictures: number[]) => [
  entry('user', { type: 'text', text: 'Look.' }),
  ...pictures.flatMap((count, i) => {
    const call = { callId: `c${i}`, name: 'read_output' };
    const images = Array.from({ length: count }, () => ({ mimetype: 'image/png', assetId: 'a' as AssetId }));
    return [
      entry('assistant', { type: 'tool-call', ...call, input: {} }),
      entry('tool', { type: 'tool-result', ...call, status: 'completed', output: 'x', images }),
    ];
  }),
];

/** Returns for each result how many pictures are sent, and how many its text says are left out. */
function sent(entries: readonly StoredEntry[], bytes: number) {
  const picture = new Uint8Array(bytes);
  return messagesOf(entries, { modelId: 'm', seesImages: true, image: () => picture }).flatMap((message) => {
    if (message.role !== 'tool') return [];
    return message.content.map((part) => {
      assert.ok(part.type === 'tool-result');
      const { output } = part;
      const said = JSON.stringify(output.type === 'content' ? output.value[0] : output);
      const pictures = output.type === 'content' ? output.value.length - 1 : 0;
      return [pictures, /\[(\d+) images? left out/.exec(said)?.[1]];
    });
  });
}

test('a model gets the last ten pictures of a history, and for each result the number of pictures left out', () => {
  assert.deepEqual(sent(history(5, MAX_SHOWN_IMAGES - 5), 1), [
    [5, undefined],
    [5, undefined],
  ]);
  assert.deepEqual(sent(history(1, 5, MAX_SHOWN_IMAGES - 4), 1), [
    [0, '1'],
    [1, '4'],
    [6, undefined],
  ]);
  assert.deepEqual(sent(history(2, MAX_SHOWN_IMAGES), 1), [
    [0, '2'],
    [10, undefined],
  ]);
});

test("pictures are dropped five at a time, so that the beginning of requests stays the same for the model's cache", () => {
  const firsts = Array.from({ length: 22 }, (_, more) => {
    const pictures = sent(history(...Array.from({ length: more }, () => 1)), 1);
    return pictures.filter(([count]) => count === 0).length;
  });
  assert.deepEqual(firsts, [...Array(11).fill(0), ...Array(5).fill(5), ...Array(5).fill(10), 15]);
});

test('a model gets the last pictures that fit into 12 MiB', () => {
  const third = MAX_SHOWN_IMAGE_BYTES / 3;
  assert.deepEqual(sent(history(1, 1, 1), third), [
    [1, undefined],
    [1, undefined],
    [1, undefined],
  ]);
  assert.deepEqual(sent(history(1, 1, 1), third + 1), [
    [0, '1'],
    [1, undefined],
    [1, undefined],
  ]);
});

test('pictures that are not sent do not cause outputs to be left out', () => {
  const entries = history(...Array.from({ length: 100 }, () => 1));
  assert.equal(compactEntries(entries, 20_000).outputs, 0);
  assert.ok(compactEntries(entries, 10_000).outputs > 0);
});

test('an output of a tool has at most ten pictures, and a note gives the total number of pictures', () => {
  const outcome = (count: number) => {
    const images = Array.from({ length: count }, () => ({ mimetype: 'image/png', bytes: new Uint8Array(1) }));
    const { text, images: kept = [] } = shortened({ status: 'completed', text: 'x', images });
    return [text, kept.length];
  };
  assert.deepEqual(outcome(MAX_OUTPUT_IMAGES), ['x', 10]);
  assert.deepEqual(outcome(MAX_OUTPUT_IMAGES + 1), ['x\n[only the first 10 of 11 pictures]', 10]);
});
