import assert from 'node:assert/strict';
import test from 'node:test';
import { EchoFilter } from '#src/pages/echo-filter.ts';

test('a text that the page was sent is an echo once, and an edit afterwards', () => {
  const echoes = new EchoFilter();
  echoes.sent('a', 'x = 1', 0);
  assert.equal(echoes.isEcho('a', 'x = 1', 400), true);
  assert.equal(echoes.isEcho('a', 'x = 1', 500), false);
});

test('an echo of an earlier text is recognised even if a later one was sent in between', () => {
  const echoes = new EchoFilter();
  echoes.sent('a', 'x = 1', 0);
  echoes.sent('a', 'x = 2', 100);
  assert.equal(echoes.isEcho('a', 'x = 1', 400), true);
  assert.equal(echoes.isEcho('a', 'x = 2', 500), true);
});

test('another text, another cell, and a text that arrives five seconds later are edits', () => {
  const echoes = new EchoFilter();
  echoes.sent('a', 'x = 1', 0);
  assert.equal(echoes.isEcho('a', 'x = 3', 400), false);
  assert.equal(echoes.isEcho('b', 'x = 1', 400), false);
  assert.equal(echoes.isEcho('a', 'x = 1', 5001), false);
});

test('a text that the page wrote is not an echo of an earlier text that it was sent', () => {
  const echoes = new EchoFilter();
  echoes.sent('a', 'x = 1', 0);
  echoes.wrote('a');
  assert.equal(echoes.isEcho('a', 'x = 1', 400), false);
});

test('a page may lag in a cell until it repeats the text that it was sent, for at most five seconds', () => {
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
