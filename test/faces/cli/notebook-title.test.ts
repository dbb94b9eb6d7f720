import assert from 'node:assert/strict';
import test from 'node:test';
import { titleOfFile } from '#src/faces/cli/run/notebook-title.ts';
import { assertLinear } from '#test/support/growth.ts';

test('the title is read from the file, with any line ends; a file without a title has its file name as title', () => {
  const app = (title: string) => `import marimo\n\napp = marimo.App(width="full", app_title=${title})\n`;
  const titles = [
    titleOfFile('a.py', { format: 'py', content: app('"Sales"') }),
    titleOfFile('a.py', { format: 'py', content: 'x = 1' }),
    titleOfFile('a.md', { format: 'md', content: '---\nwidth: full\ntitle: "Sales"\n---\n' }),
    titleOfFile('a.md', { format: 'md', content: '---\r\nwidth: full\r\ntitle: Sales\r\n---\r\n' }),
    titleOfFile('a.md', { format: 'md', content: '---\nwidth: full\n---\ntitle: Sales\n' }),
  ];
  assert.deepEqual(titles, ['Sales', 'a', 'Sales', 'Sales', 'a']);
});

test('a long title is cut between characters', () => {
  const content = `App(app_title="${'a'.repeat(199)}😀b")`;
  assert.equal(titleOfFile('x.py', { format: 'py', content }), 'a'.repeat(199));
});

test('the time to find a title is proportional to the length of the file', () => {
  assertLinear('a title', 160_000, (count) => {
    assert.equal(titleOfFile('x.py', { format: 'py', content: 'App('.repeat(count) }), 'x');
  });
});
