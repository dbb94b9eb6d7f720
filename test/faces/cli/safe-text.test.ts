import assert from 'node:assert/strict';
import { test } from 'node:test';
import { FoldedText, safeJson, safeLine, safeText, TerminalText } from '#src/faces/cli/safe-text.ts';
import { terminalOn } from '#src/faces/cli/terminal.ts';

const ESC = '\u001b';
const colored = (text: string) => safeText(text, { colors: true });

/** A terminal that shows both streams, with the bytes that it got. */
function screen({ color = true, live = true } = {}) {
  const sent: string[] = [];
  const take = (text: string) => void sent.push(text);
  const terminal = terminalOn({ out: take, err: take, color, live, screens: { out: true, err: true } });
  return { terminal, sent };
}

test('text, tabs, line feeds and colours are not removed', () => {
  const text = `a\tb\nZürich 😀 שלום ${ESC}[1;31mred${ESC}[0m ${ESC}[38;2;1;2;3mtrue${ESC}[m ${ESC}[38:5:9mcolon`;
  assert.equal(colored(text), text);
  assert.equal(safeText(`${ESC}[31mred${ESC}[0m`, { colors: false }), 'red');
});

test('no text sets the title, the clipboard, the modes or the cursor of a terminal', () => {
  for (const [text, shown] of [
    [`a${ESC}]0;title\u0007b`, 'ab'],
    [`a${ESC}]52;c;cm0gLXJmIH4=${ESC}\\b`, 'ab'],
    ['a\u009d0;title\u009cb', 'ab'],
    [`a${ESC}[2Jb${ESC}[10;10Hc${ESC}[?1049hd`, 'abcd'],
    ['a\u009b2Jb', 'ab'],
    [`a${ESC}P+q544e${ESC}\\b${ESC}_G;AAAA${ESC}\\c`, 'abc'],
    [`a${ESC}cb${ESC}(0c${ESC}7d`, 'abcd'],
    ['a\bb\u0000c\u0007d\u000be\u007ff', 'abcdef'],
    ['a\u202eb\u2066c', 'abc'],
    [`a${ESC}[${'1;'.repeat(400)}mb`, 'ab'],
    [`a${ESC}[99999mb`, 'ab'],
    [`a${ESC}[>4;1mb`, 'ab'],
  ] as const) {
    assert.equal(colored(text), shown, JSON.stringify(text));
  }
});

test('an escape sequence without an end hides none of the text after it', () => {
  assert.equal(colored(`${ESC}]0;no end\nnext line`), '0;no end\nnext line');
  assert.equal(colored(`text${ESC}`), 'text');
  assert.equal(colored(`text${ESC}[12`), 'text12');
});

test('a carriage return in a name or a message starts a new line, and on one line a space', () => {
  assert.equal(colored('real\rforged'), 'real\nforged');
  assert.equal(colored('dos\r\nlines'), 'dos\nlines');
  assert.equal(safeLine(`two\r\nlines${ESC}[31m`), 'two lines');
});

test('JSON keeps its value, and its control characters are escaped', () => {
  const value = { text: 'a\u009b2J\u202e\u007f' };
  const json = safeJson(JSON.stringify(value));
  assert.deepEqual(JSON.parse(json), value);
  assert.equal(json, '{"text":"a\\u009b2J\\u202e\\u007f"}');
});

test('a progress bar overwrites its line', () => {
  const { terminal, sent } = screen();
  terminal.printed('err', '\r 10%|#   |');
  terminal.printed('err', '\r 20%|##  |');
  assert.equal(sent.join(''), `\r${ESC}[2K 10%|#   |\r${ESC}[2K 20%|##  |`);
});

test('a sequence or a line end that arrives in two pieces is joined', () => {
  const printed = new TerminalText('<again>', { colors: true });
  assert.equal(
    [`${ESC}[3`, '1mred\r', '\nline\r', 'over', `${ESC}`, ']0;x\u0007y']
      .map((part) => printed.take(part))
      .join(''),
    `${ESC}[31mred\nline<again>overy`,
  );
});

test('an unfinished sequence of one cell does not affect other text', () => {
  const { terminal, sent } = screen();
  terminal.printed('out', `a${ESC}[`);
  terminal.out('2J said by the command line\n');
  terminal.printed('out', '2Jb');
  assert.equal(sent.join(''), 'a2J said by the command line\n2Jb');
});

test("in redirected output a command's own text is unchanged, and text printed by programs has no control sequences", () => {
  const sent: string[] = [];
  const terminal = terminalOn({ out: (text) => sent.push(text), err: () => {}, color: false });
  const text = `${ESC}]0;title\u0007\r\u009b2J`;
  terminal.out(text);
  terminal.printed('out', `${text}printed`);
  terminal.flush();
  assert.deepEqual(sent, [text, 'printed']);
});

test('a rewritten line that arrives in any pieces is written once, in its last version', () => {
  const text = 'a\r\nb 1%\rb 2%\u001b[32m done\u001b[0m\nlast\rline\r';
  for (const size of [1, 3, text.length]) {
    const folded = new FoldedText();
    const pieces = text.match(new RegExp(`[^]{1,${size}}`, 'g')) ?? [];
    const shown = pieces.map((piece) => folded.take(piece)).join('') + folded.flush();
    assert.equal(shown, 'a\nb 2% done\nline', `in pieces of ${size}`);
  }
});

test('a line without an end is not held back without limit', () => {
  assert.equal(new FoldedText().take('x'.repeat(100_000)).length, 100_000);
});

test('standard output and standard error are treated separately: results in a file, messages on a terminal', () => {
  const sent: string[] = [];
  const take = (name: string) => (text: string) => void sent.push(`${name} ${text}`);
  const terminal = terminalOn({
    out: take('out'),
    err: take('err'),
    color: false,
    screens: { out: false, err: true },
  });
  terminal.out(`${ESC}[2Jx`);
  terminal.err(`${ESC}[2J${ESC}[31mx`);
  assert.deepEqual(sent, [`out ${ESC}[2Jx`, 'err x']);
});
