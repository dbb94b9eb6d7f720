// tier: whole, because it makes random or hostile input
/**
 * Frames that a kernel might forge, made from a seed: each is accepted or rejected, and no accepted
 * one harms a notebook.
 */

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { parseBoundedJson } from '#src/confined/processes/bounded-json.ts';
import { encodeFrame, FrameDecoder, FrameError } from '#src/confined/processes/frame-decoder.ts';
import { ShapeError } from '#src/confined/processes/json-shape.ts';
import { decodeMessage } from '#src/confined/processes/kernel/message-decoders.ts';
import type { KernelMessage } from '#src/confined/processes/kernel/messages.ts';
import { Heartbeats } from '#src/runtime/events/heartbeats.ts';
import { openUnsavedNotebook } from '#test/notebook/unsaved-notebook.ts';
import { SeededRandom } from '#test/support/random.ts';
import { mutated, odd } from './odd-values.ts';

const SEED = Number(process.env.FUZZ_SEED ?? 8);
const FRAMES = Number(process.env.FUZZ_FRAMES ?? 20_000);

const output = { channel: 'output', mimetype: 'text/plain', data: 'x', timestamp: 1 };
const print = { channel: 'stdout', mimetype: 'text/plain', data: 'x', timestamp: 1 };
const error = { type: 'exception', msg: 'no', exception_type: 'E', raising_cell: 'a' };
const config = { column: null, disabled: false, hide_code: true };
const id = { run_id: 'r', execution_id: 'e', cell_id: 'a' };

/** One message of each kind, as a kernel sends it. */
const MESSAGES: readonly object[] = [
  { op: 'cell-op', ...id, output, console: print, status: 'running', stale_inputs: true, timestamp: 1 },
  {
    op: 'cell-op',
    ...id,
    output: null,
    console: [print, print],
    status: null,
    stale_inputs: null,
    timestamp: 1,
  },
  {
    op: 'cell-op',
    ...id,
    output: { ...output, channel: 'marimo-error', data: [error] },
    console: [],
    timestamp: 1,
  },
  {
    op: 'cell-op',
    ...id,
    cell_id: '__scratch__',
    output: { ...output, data: { 'image/png': 'x' } },
    timestamp: 1,
  },
  { op: 'execution', ...id, phase: 'running' },
  { op: 'variables', variables: [{ name: 'x', declared_by: ['a'], used_by: ['b', 'c'] }] },
  {
    op: 'notebook-document-transaction',
    transaction: {
      source: 'code-mode',
      changes: [
        { type: 'create-cell', cellId: 'n', code: 'x', name: 'n', config, before: 'a', after: null },
        { type: 'set-code', cellId: 'a', code: 'y' },
        { type: 'set-name', cellId: 'a', name: 'y' },
        { type: 'set-config', cellId: 'a', disabled: true, hideCode: false, column: 1 },
        { type: 'move-cell', cellId: 'a', before: null, after: 'b' },
        { type: 'reorder-cells', cellIds: ['c', 'b', 'a'] },
        { type: 'delete-cell', cellId: 'b' },
      ],
    },
  },
  { op: 'missing-package-alert', packages: ['x'] },
  { op: 'bridge-ready', ms: 1, token: 't' },
  {
    op: 'bridge-done',
    seq: 1,
    type: 'X',
    error: null,
    interrupted: false,
    cells: {
      a: ['success', false, []],
      b: ['exception', true, [error]],
      c: [null, true, [{ type: 'cycle' }]],
    },
  },
  { op: 'bridge-judged', errors: { a: [error] } },
  { op: 'bridge-app-options', options: { width: 'full' } },
];

function refusedBy(error: unknown): boolean {
  return error instanceof ShapeError || error instanceof FrameError;
}

const CODES = { a: '1', b: '1', c: '1' };

test(`${FRAMES} forged messages of seed ${SEED} are accepted or rejected, and harm no notebook`, (t) => {
  const random = new SeededRandom(SEED);
  using heartbeats = new Heartbeats(60_000);
  const open = () => openUnsavedNotebook(CODES, { limitBytes: 1 << 20, heartbeats }).live;
  let [live, taken] = [open(), 0];
  for (let count = 0; count < FRAMES; count++) {
    if (count % 500 === 0) live = open();
    const forged = mutated(random, random.pick(MESSAGES), random.pick([0, 0.02, 0.1, 0.4]));
    let message: KernelMessage;
    try {
      message = decodeMessage(parseBoundedJson(Buffer.from(JSON.stringify(forged))));
    } catch (error) {
      assert.ok(refusedBy(error), `${JSON.stringify(forged)}: ${error}`);
      continue;
    }
    taken++;
    try {
      live.apply([message]);
      live.replay();
    } catch (error) {
      assert.fail(`${JSON.stringify(forged)}: ${error instanceof Error ? error.stack : error}`);
    }
  }
  t.diagnostic(`${taken} taken`);
  assert.ok(taken > FRAMES / 5 && taken < FRAMES);
});

test('any bytes, in pieces of any size, become frames or are rejected', () => {
  const random = new SeededRandom(SEED);
  for (let count = 0; count < 3000; count++) {
    const good = encodeFrame(0, random.pick(MESSAGES));
    const bytes = Buffer.concat([good, random.is(0.5) ? random.bytes(random.below(64)) : good]);
    for (let flips = random.below(4); flips > 0; flips--)
      bytes[random.below(bytes.length)] = random.below(256);
    const decoder = new FrameDecoder(1 << 16);
    try {
      for (let at = 0; at < bytes.length; ) {
        const size = 1 + random.below(64);
        for (const { body } of decoder.push(bytes.subarray(at, at + size)))
          decodeMessage(parseBoundedJson(body));
        at += size;
      }
    } catch (error) {
      assert.ok(refusedBy(error), `${bytes.toString('latin1')}: ${error}`);
    }
  }
});

test('any JSON text becomes a value or is rejected', () => {
  const random = new SeededRandom(SEED);
  const pieces = ['{', '}', '[', ']', ',', ':', '"', '\\', '"a"', '1', 'null', ' ', 'é', '\u0000', '-', 'e9'];
  for (let count = 0; count < 20_000; count++) {
    const length = random.below(random.is(0.05) ? 400 : 12);
    const text = Array.from({ length }, () => random.pick(pieces)).join('');
    const body = random.is(0.2) ? Buffer.from(JSON.stringify(odd(random)) + text) : Buffer.from(text);
    try {
      parseBoundedJson(body);
    } catch (error) {
      assert.ok(refusedBy(error), `${text}: ${error}`);
    }
  }
});
