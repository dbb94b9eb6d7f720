import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import test, { type TestContext } from 'node:test';
import { findHostScript } from '#src/kernel/host-script.ts';
import { SyntaxJudge } from '#src/kernel/syntax-judge.ts';
import { descendants } from '#test/support/processes.ts';

function startJudge(t: TestContext): SyntaxJudge {
  const python = process.env.TROUPE_PYTHON ?? join('.venv', 'bin', 'python');
  const judge = new SyntaxJudge({ python, script: findHostScript('syntax.py'), environment: process.env });
  t.after(() => judge[Symbol.dispose]());
  return judge;
}

const CODES: Readonly<Record<string, boolean>> = {
  'x = 1': true,
  '': true,
  ' \n': true,
  'await thing()': true,
  'lambda x, /, y, *, z: x': true,
  'with (open("a") as f, open("b") as g):\n    pass': true,
  'print("\\d")': true,
  'x = (': false,
  'x = = 1': false,
  'def f(:\n pass': false,
  '    x = 1': false,
  'if True:\n    x\n  y': false,
  'x = "\0"': false,
};

test('code parses exactly when Python says so', async (t) => {
  const judge = startJudge(t);
  for (const [code, parses] of Object.entries(CODES)) {
    assert.equal(await judge.allParse([code]), parses, JSON.stringify(code));
    assert.equal(await judge.allParse(['ok = 1', code]), parses, JSON.stringify(code));
  }
});

test('the process that parses has given up what it does not need', async (t) => {
  const judge = startJudge(t);
  assert.equal(await judge.allParse(['x = "\\N{BULLET}"']), true);
  const [child] = descendants(process.pid).filter(({ pid }) =>
    readFileSync(`/proc/${pid}/cmdline`, 'latin1').includes('syntax.py'),
  );
  const status = readFileSync(`/proc/${child!.pid}/status`, 'latin1');
  for (const line of ['NoNewPrivs:\t1', 'Seccomp:\t2', `CapEff:\t${'0'.repeat(16)}`])
    assert.ok(status.includes(line), status);
});

test('what was judged before is answered at once', async (t) => {
  const judge = startJudge(t);
  assert.equal(await judge.allParse(['x = 1', 'y = 2']), true);
  assert.equal(judge.allParse(['y = 2', 'x = 1', '']), true);
  assert.equal(await judge.allParse(['x = (']), false);
  assert.equal(judge.allParse(['never seen', 'x = (']), false);
});

test('code that breaks the parser does not parse, and the next question is answered', async (t) => {
  const judge = startJudge(t);
  const hostile = [
    `${'('.repeat(200_000)}`,
    `x = ${'-'.repeat(500_000)}1`,
    `${'['.repeat(90)}${']'.repeat(90)}`,
  ];
  const answers = await Promise.all([
    ...hostile.map((code) => judge.allParse([code])),
    judge.allParse(['fine = 1']),
  ]);
  assert.deepEqual(answers, [false, false, true, true]);
});

test('a judge that was closed answers no to what it did not know', async (t) => {
  const judge = startJudge(t);
  const asked = judge.allParse(['x = 1']);
  judge[Symbol.dispose]();
  assert.equal(await asked, false);
  assert.equal(await judge.allParse(['y = 1']), false);
});
