import assert from 'node:assert/strict';
import test from 'node:test';
import { MAX_CODE_CHARS } from '#src/notebook/open/view.ts';
import { EchoFilter } from '#src/notebook/pages/echo-filter.ts';

test('a text that was sent to the page counts as an echo once, and afterwards as an edit', () => {
  const echoes = new EchoFilter();
  echoes.sent('a', 'x = 1', 0);
  assert.equal(echoes.isEcho('a', 'x = 1', 400), true);
  assert.equal(echoes.isEcho('a', 'x = 1', 500), false);
});

test('an echo of an earlier text is recognised even if a later text was sent in between', () => {
  const echoes = new EchoFilter();
  echoes.sent('a', 'x = 1', 0);
  echoes.sent('a', 'x = 2', 100);
  assert.equal(echoes.isEcho('a', 'x = 1', 400), true);
  assert.equal(echoes.isEcho('a', 'x = 2', 500), true);
});

test('a text counts as an edit if it differs, is for another cell, or arrives five seconds later', () => {
  const echoes = new EchoFilter();
  echoes.sent('a', 'x = 1', 0);
  assert.equal(echoes.isEcho('a', 'x = 3', 400), false);
  assert.equal(echoes.isEcho('b', 'x = 1', 400), false);
  assert.equal(echoes.isEcho('a', 'x = 1', 5001), false);
});

test('a text that the page itself wrote does not count as an echo of an earlier text from the server', () => {
  const echoes = new EchoFilter();
  echoes.sent('a', 'x = 1', 0);
  echoes.wrote('a');
  assert.equal(echoes.isEcho('a', 'x = 1', 400), false);
});

test('a page may lag in a cell until it repeats the text from the server, for at most five seconds', () => {
  const echoes = new EchoFilter();
  assert.equal(echoes.mayBeBehind('a', 0), false);
  echoes.sent('a', 'x = 1', 0);
  echoes.wrote('a');
  assert.equal(echoes.mayBeBehind('a', 4999), true);
  assert.equal(echoes.mayBeBehind('a', 5000), false);
  echoes.sent('a', 'x = 2', 6000);
  assert.equal(echoes.isEcho('a', 'x = 2', 6400), true);
  assert.equal(echoes.mayBeBehind('a', 6400), false);
  echoes.corrected('a', 'x = 3', 7000);
  assert.equal(echoes.mayBeBehind('a', 7000), false, 'a correction has the text of the page itself');
});

test('texts that can no longer come back are forgotten, also texts of removed cells', () => {
  const echoes = new EchoFilter();
  for (let second = 0; second < 100; second++) echoes.sent(`cell ${second}`, 'x'.repeat(1000), second * 1000);
  assert.equal(echoes.chars, 5000);
  echoes.trim(200_000);
  assert.equal(echoes.chars, 0);
});

test('the remembered texts of a page take at most twice as much as the code of a notebook, and the latest texts stay', () => {
  const echoes = new EchoFilter();
  const text = 'x'.repeat(2 ** 20);
  for (let n = 0; n < 40; n++) echoes.sent(`cell ${n}`, text, n);
  assert.equal(echoes.chars, 2 * MAX_CODE_CHARS);
  assert.deepEqual([echoes.isEcho('cell 7', text, 50), echoes.isEcho('cell 8', text, 50)], [false, true]);
});
