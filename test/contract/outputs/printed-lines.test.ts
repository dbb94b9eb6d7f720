import assert from 'node:assert/strict';
import { test } from 'node:test';
import { printedLines } from '#src/contract/outputs/printed-lines.ts';

const bar = (percent: number) => `\r${String(percent).padStart(3)}%|${'#'.repeat(percent / 10).padEnd(10)}|`;

test('text after a carriage return replaces only as many characters as it has itself', () => {
  assert.equal(printedLines('abc\rX'), 'Xbc');
  assert.equal(printedLines('abc\r\rX\r'), 'Xbc');
  assert.equal(printedLines('😀b\rX'), 'Xb');
  assert.equal(printedLines('one\r\ntwo\r\r\nthree'), 'one\ntwo\nthree');
  assert.equal(printedLines('\r'), '');
});

test('only the last state of a progress bar is shown, and text between two bars stays', () => {
  assert.equal(printedLines(`${bar(0)}${bar(50)}${bar(100)}\n`), '100%|##########|\n');
  assert.equal(
    printedLines(`${bar(0)}${bar(50)}\nloss 0.3\n${bar(60)}${bar(100)}\ndone\n`),
    ' 50%|#####     |\nloss 0.3\n100%|##########|\ndone\n',
  );
  assert.equal(
    printedLines(`${bar(40)} begins\n${bar(100)}\n`),
    ' 40%|####      | begins\n100%|##########|\n',
    'printed in the line of the bar',
  );
});

test('sequences that erase a line erase it, and other sequences are left out', () => {
  assert.equal(printedLines('a long bar\r\u001b[Kdone'), 'done');
  assert.equal(printedLines('a long bar\u001b[2K\rdone'), 'done');
  assert.equal(printedLines('ab\rX\u001b[0K'), 'X');
  assert.equal(printedLines('abc\u001b[2KX'), '   X');
  assert.equal(printedLines('\u001b[31mred\u001b[0m \u001b]0;title\u0007text'), 'red text');
});

test('the work for many short overwrites of a long line is linear', () => {
  const text = `${'x'.repeat(500_000)}${'\ry'.repeat(500_000)}${'\u001b[K'.repeat(100_000)}`;
  assert.equal(printedLines(text), 'y');
});
