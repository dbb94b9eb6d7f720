import assert from 'node:assert/strict';
import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import { cut } from '#src/agent/tools/tool.ts';
import { PACKAGE_ROOT } from '#src/base/install/package-root.ts';
import { compactPart, shortenText } from '#src/base/text/compact-text.ts';
import { cutText, endOfText, placeAfter, placeToCut } from '#src/base/text/cut-text.ts';
import { ConsoleTail } from '#src/notebook/open/console-tail.ts';

const TEXTS = ['', 'abc', '😀', 'a😀', '😀a', 'ba😀😀😀', '😀é€😀\n😀', 'x'.repeat(5) + '😀'.repeat(9)];

test('a text is cut at every place without cutting a character in half', () => {
  for (const text of TEXTS) {
    for (let at = 0; at <= text.length; at++) {
      const [head, tail] = [cutText(text, 0, at), cutText(text, at)];
      assert.equal(head + tail, text);
      const parts = [head, tail, endOfText(text, at), compactPart(text, 0, at), shortenText(text, at)];
      assert.deepEqual(
        parts.map((part) => part.isWellFormed()),
        parts.map(() => true),
        `${JSON.stringify(text)} at ${at}`,
      );
      assert(head.length <= at && endOfText(text, at).length <= at);
      assert(placeToCut(text, at) <= at && placeAfter(text, at) >= at);
    }
  }
});

test('text without surrogate pairs is cut as `slice` cuts text', () => {
  for (const [start, end] of [
    [0, 2],
    [1, 99],
    [-2, undefined],
    [3, 1],
  ] as const)
    assert.equal(cutText('abcdef', start, end), 'abcdef'.slice(start, end));
});

test('a lone surrogate in the text itself stays unchanged', () => {
  assert.equal(cutText('a\ud83d', 0, 2), 'a\ud83d');
  assert.equal(cutText('\ude00a', 1), 'a');
});

test('the output of a tool and printed text have only whole characters, wherever they are cut', () => {
  for (const before of ['', 'b', 'ba', 'bar']) {
    assert(cut(before + '😀'.repeat(20), 16).isWellFormed());
    const tail = new ConsoleTail(64);
    for (let i = 0; i < 400; i++)
      tail.add({
        channel: 'stdout',
        mimetype: 'text/plain',
        data: before + '😀'.repeat(i % 90),
        timestamp: 0,
      });
    for (const { data } of tail.entries()) assert(String(data).isWellFormed());
    for (const text of tail.ends()) assert(text.isWellFormed());
  }
});

/**
 * A limit in the arguments of `slice`: a number of three digits, or a constant that is named for characters. Such a cut is anywhere in
 * a text, not at a place that was found in it. Limits of lists have other names.
 */
const BY_COUNT =
  /\.slice\((?:[^()]*\b[A-Z_]*(?:CHARS|CHARACTERS|LABEL|TEXT_LENGTH|INPUT_LENGTH)\b|(?:0, |-)\d[\d_]{2,}\))/;
const ONLY_OF_TEXTS = /\.(?:substring|substr)\(/;
const EXCUSE = /cuts no character/;

test('only cutText cuts text at a limit, unless a comment says why the cut divides no character', () => {
  const folders = ['src', 'storage', 'machines'];
  const files = folders.flatMap((folder) =>
    readdirSync(join(PACKAGE_ROOT, folder), { recursive: true, encoding: 'utf8' })
      .filter((name) => /\.tsx?$/.test(name))
      .map((name) => join(folder, name)),
  );
  const found = files.flatMap((file) => {
    if (file === join('src', 'base', 'text', 'cut-text.ts')) return [];
    const lines = readFileSync(join(PACKAGE_ROOT, file), 'utf8').split('\n');
    return lines.flatMap((line, at) => {
      const isCut = BY_COUNT.test(line) || ONLY_OF_TEXTS.test(line);
      const isExcused = EXCUSE.test(line) || EXCUSE.test(lines[at - 1] ?? '');
      return isCut && !isExcused ? [`${file}:${at + 1}: ${line.trim()}`] : [];
    });
  });
  assert.deepEqual(found, []);
});
