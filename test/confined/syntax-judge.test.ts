import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import test, { type TestContext } from 'node:test';
import { SyntaxJudge } from '#src/confined/children/syntax-judge.ts';
import { descendants, eventually, type ProcessFact } from '#test/support/processes.ts';
import { startTestHost, type TestHost } from './kernel-fixture.ts';

async function startJudge(t: TestContext): Promise<{ judge: SyntaxJudge; host: TestHost }> {
  const host = await startTestHost();
  t.after(() => host[Symbol.asyncDispose]());
  const judge = new SyntaxJudge(host.host);
  t.after(() => judge[Symbol.dispose]());
  return { judge, host };
}

/** The processes of the kernel host: guardian, zygote and their children. */
function hostProcesses(): ProcessFact[] {
  return descendants(process.pid).filter(({ pid }) =>
    readFileSync(`/proc/${pid}/cmdline`, 'latin1').includes('zygote.py'),
  );
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
  const { judge } = await startJudge(t);
  for (const [code, parses] of Object.entries(CODES)) {
    assert.equal(await judge.allParse([code]), parses, JSON.stringify(code));
    assert.equal(await judge.allParse(['ok = 1', code]), parses, JSON.stringify(code));
  }
});

test('the parsing process has given up all unneeded rights', async (t) => {
  const { judge } = await startJudge(t);
  assert.equal(await judge.allParse(['x = "\\N{BULLET}"']), true);
  const deepest = hostProcesses().at(-1)!;
  const status = readFileSync(`/proc/${deepest.pid}/status`, 'latin1');
  for (const line of ['NoNewPrivs:\t1', 'Seccomp:\t2', `CapEff:\t${'0'.repeat(16)}`])
    assert.ok(status.includes(line), status);
});

test('a notebook that was checked before is answered at once', async (t) => {
  const { judge } = await startJudge(t);
  assert.equal(await judge.allParse(['x = 1', 'y = 2']), true);
  assert.equal(judge.allParse(['y = 2', 'x = 1', '']), true);
  assert.equal(await judge.allParse(['x = (']), false);
  assert.equal(judge.allParse(['never seen', 'x = (']), false);
});

test('code that breaks the parser does not parse, and the next question is answered', async (t) => {
  const { judge } = await startJudge(t);
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

test('a question during which the kernel host dies is asked of its successor', async (t) => {
  const { judge } = await startJudge(t);
  assert.equal(await judge.allParse(['x = 1']), true);
  const processes = hostProcesses();
  process.kill(processes.at(-1)!.pid, 'SIGSTOP');
  const answers = Promise.all([judge.allParse(['y = 1']), judge.allParse(['y = ('])]);
  process.kill(processes[0]!.pid, 'SIGKILL');
  assert.deepEqual(await answers, [true, false]);
});

test('a kernel host that hangs does not keep questions waiting without an answer', async (t) => {
  const { judge } = await startJudge(t);
  const [, zygote] = await eventually('the judge is there before it is asked', () => {
    const processes = hostProcesses();
    return processes.some(({ name }) => name === 'troupe-syntax') ? processes : undefined;
  });
  process.kill(zygote!.pid, 'SIGSTOP');
  t.after(() => process.kill(zygote!.pid, 'SIGCONT'));
  assert.equal(await judge.allParse(['x = 1']), true);
});

test('a closed judge returns false for notebooks that it has not judged', async (t) => {
  const { judge } = await startJudge(t);
  const asked = judge.allParse(['x = 1']);
  judge[Symbol.dispose]();
  assert.equal(await asked, false);
  assert.equal(await judge.allParse(['y = 1']), false);
});
