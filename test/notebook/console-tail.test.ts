import assert from 'node:assert/strict';
import test from 'node:test';
import type { CellOutput } from '#src/confined/processes/kernel/messages.ts';
import { ConsoleTail, MAX_CONSOLE_END_CHARS } from '#src/notebook/open/console-tail.ts';
import { stderr, stdout } from './kernel-messages.ts';

const LIMIT = MAX_CONSOLE_END_CHARS;

test('text within the limit is kept whole, and adjacent entries of one channel are joined', () => {
  const tail = tailOf(stdout('a'), stdout('b'), stderr('c'), stdout('d'));
  assert.deepEqual([tail.entries(), tail.omitted], [[stdout('ab'), stderr('c'), stdout('d')], 0]);
});

test('figures do not count as text, and keep their places when text around them is left out', () => {
  const figure = {
    channel: 'media',
    mimetype: 'image/png',
    data: 'f'.repeat(3 * LIMIT),
    timestamp: 1,
  } as const;
  const tail = tailOf(stdout('h'.repeat(LIMIT)), stdout('m'), figure, stdout('t'.repeat(LIMIT)), figure);
  assert.deepEqual(
    [tail.entries(), tail.omitted, tail.omittedMedia],
    [[stdout('h'.repeat(LIMIT)), figure, stdout('t'.repeat(LIMIT)), figure], 1, 0],
  );
});

test('the number of omitted figures is counted', () => {
  const figure = { channel: 'media', mimetype: 'image/png', data: 'f', timestamp: 1 } as const;
  const many = tailOf(...Array.from({ length: 103 }, () => figure));
  const large = tailOf({ ...figure, data: 'f'.repeat(17 * 2 ** 20) });
  assert.deepEqual(
    [many.entries().length, many.omittedMedia, large.isEmpty, large.omittedMedia],
    [100, 3, true, 1],
  );
});

test('text of exactly twice the limit is kept completely', () => {
  const text = 'h'.repeat(LIMIT) + 't'.repeat(LIMIT);
  const tail = tailOf(stdout(text));
  assert.deepEqual([textOf(tail), tail.omitted], [text, 0]);
});

test('text of one character more than twice the limit loses the entry after the beginning', () => {
  const tail = tailOf(stdout(`${'h'.repeat(LIMIT)}!${'t'.repeat(LIMIT)}`));
  assert.deepEqual([textOf(tail), tail.omitted], ['h'.repeat(LIMIT) + 't'.repeat(LIMIT), 1]);
});

test('a text that is split at the limit becomes one entry again', () => {
  const tail = tailOf(stdout('h'.repeat(LIMIT - 1)), stdout('abc'));
  assert.deepEqual(tail.entries(), [stdout(`${'h'.repeat(LIMIT - 1)}abc`)]);
});

test('a long console keeps its beginning and end, and the number of missing characters', () => {
  const tail = tailOf(
    stdout('h'.repeat(LIMIT)),
    stdout('m'.repeat(10 * LIMIT)),
    stderr('e'.repeat(LIMIT - 5)),
  );
  assert.deepEqual(
    [tail.entries(), tail.omitted],
    [[stdout(`${'h'.repeat(LIMIT)}mmmmm`), stderr('e'.repeat(LIMIT - 5))], 10 * LIMIT - 5],
  );
});

test('many small pieces of text are kept and left out like one large piece', () => {
  const pieces = 3 * 1_000_000;
  const tail = new ConsoleTail();
  const piece = (i: number) => stdout(String(i % 10));
  for (let i = 0; i < pieces; i++) tail.add(piece(i));
  const expected = (from: number) => Array.from({ length: LIMIT }, (_, i) => (from + i) % 10).join('');
  assert.equal(textOf(tail), expected(0) + expected(pieces - LIMIT));
  assert.equal(tail.omitted, pieces - 2 * LIMIT);
});

test('dropped text leaves no empty entry', () => {
  const tail = tailOf(stdout('h'.repeat(LIMIT)), stderr('!'), stdout('t'.repeat(LIMIT)));
  assert.deepEqual(tail.entries(), [stdout('h'.repeat(LIMIT) + 't'.repeat(LIMIT))]);
});

test('the order is kept when a small entry follows an entry that was too large for the beginning', () => {
  const image: CellOutput = { channel: 'media', mimetype: 'image/png', data: 'i'.repeat(20), timestamp: 1 };
  const head = stdout('h'.repeat(LIMIT - 10));
  assert.deepEqual(tailOf(head, image, stdout('abc')).entries(), [head, image, stdout('abc')]);
});

test('a thousand entries are kept at the beginning and at the end, and a further entry drops one from the middle', () => {
  for (const text of ['', 'x']) {
    const alternating = Array.from({ length: 2000 }, (_, n) => (n % 2 ? stderr(text) : stdout(text)));
    const full = tailOf(...alternating);
    assert.deepEqual([full.entries(), full.omitted], [alternating, 0]);
    const beyond = tailOf(...alternating, stdout(text));
    const kept = [
      ...alternating.slice(0, 999),
      stderr(text + text),
      ...alternating.slice(1002),
      stdout(text),
    ];
    assert.deepEqual([beyond.entries(), beyond.omitted], [kept, text.length]);
  }
});

test('an object counts with the length of its JSON, plus forty characters for each list and object in it', () => {
  const data = { rows: 'r'.repeat(LIMIT) };
  const table: CellOutput = { channel: 'output', mimetype: 'application/json', data, timestamp: 1 };
  const tail = tailOf(table);
  assert.deepEqual([tail.entries(), tail.omitted], [[], JSON.stringify(data).length + 40]);
});

test('adjacent texts of different types are not joined', () => {
  const html = { ...stdout('<b>'), mimetype: 'text/html' };
  assert.deepEqual(tailOf(html, html, stdout('a')).entries(), [html, html, stdout('a')]);
});

function tailOf(...entries: readonly CellOutput[]): ConsoleTail {
  const tail = new ConsoleTail();
  for (const entry of entries) tail.add(entry);
  return tail;
}

function textOf(tail: ConsoleTail): string {
  return tail
    .entries()
    .map(({ data }) => data)
    .join('');
}
