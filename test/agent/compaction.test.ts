import assert from 'node:assert/strict';
import test from 'node:test';
import { compactEntries, LEFT_OUT, tokensOf } from '#src/agent/compaction.ts';
import type { StoredEntry } from '#src/agent/entry.ts';
import { answer, callPart, entry, resultPart, user } from './stored-entries.ts';

const call = (callId: string) => entry('assistant', callPart(callId));
const result = (callId: string, output: string) => entry('tool', resultPart(callId, output));

const LONG = 'x'.repeat(4000); // a thousand tokens
const HISTORY = [
  user('one'),
  call('a'),
  result('a', LONG),
  answer('first'),
  user('two'),
  call('b'),
  result('b', LONG),
  call('c'),
  result('c', LONG),
];

/** The history after compaction: the texts and calls of each entry, and for each output whether it was left out. */
const shown = (entries: readonly StoredEntry[]) =>
  entries.map(({ entry: { content } }) =>
    content.map((part) => {
      if (part.type === 'text') return part.text;
      if (part.type === 'tool-call') return `call ${part.callId}`;
      return part.type === 'tool-result' && part.output === LEFT_OUT ? 'left out' : 'output';
    }),
  );

test('a history within the budget is unchanged', () => {
  assert.deepEqual(compactEntries(HISTORY, 10_000), { entries: HISTORY, outputs: 0, prompts: 0 });
});

test('the oldest outputs are left out first, and no more outputs than necessary', () => {
  const { entries, outputs, prompts } = compactEntries(HISTORY, 2_500);
  assert.deepEqual([outputs, prompts], [1, 0]);
  assert.deepEqual(shown(entries).flat(), [
    ...['one', 'call a', 'left out', 'first', 'two', 'call b', 'output', 'call c', 'output'],
  ]);
});

test('the outputs of the last step stay, and whole prompts are left out when removing outputs is not enough', () => {
  const { entries, outputs, prompts } = compactEntries(HISTORY, 1_100);
  assert.deepEqual([outputs, prompts], [2, 1]);
  assert.deepEqual(shown(entries).flat(), ['two', 'call b', 'left out', 'call c', 'output']);
});

test('the present prompt stays even with the smallest budget, and every call keeps its result', () => {
  const { entries } = compactEntries(HISTORY, 1);
  assert.deepEqual(shown(entries).flat(), ['two', 'call b', 'left out', 'call c', 'output']);
});

test('removing entries subtracts their tokens from the total', () => {
  const { entries } = compactEntries(HISTORY, 2_500);
  assert.ok(entries.reduce((sum, kept) => sum + tokensOf(kept), 0) <= 2_500);
});
