// own kernel host: it inspects and ends the host
import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import test, { type TestContext } from 'node:test';
import { MAX_SHARED_CHARS, SyntaxJudge } from '#src/confined/processes/children/syntax-judge.ts';
import { descendants, eventually, type ProcessFact } from '#test/support/processes.ts';
import { startTestHost } from './kernel-fixture.ts';

async function startJudge(
  t: TestContext,
): Promise<{ judge: SyntaxJudge; guardian: ProcessFact; long: (readonly string[])[] }> {
  const long: (readonly string[])[] = [];
  // Other test files may have kernel hosts in this process.
  const others = guardians().map(({ pid }) => pid);
  const host = await startTestHost();
  t.after(() => host[Symbol.asyncDispose]());
  const judge = new SyntaxJudge(host.host, (codes, workspaceId) => {
    long.push(codes);
    return host.host.checkSyntax(codes, `/files/of/${workspaceId}`);
  });
  t.after(() => judge[Symbol.dispose]());
  const guardian = guardians().find(({ pid }) => !others.includes(pid))!;
  return { judge, guardian, long };
}

function commandOf(pid: number): string {
  try {
    return readFileSync(`/proc/${pid}/cmdline`, 'latin1');
  } catch {
    return ''; // it has ended
  }
}

/** The guardians of all kernel hosts of this process. */
function guardians(): ProcessFact[] {
  return descendants(process.pid).filter(
    ({ pid, parent }) => parent === process.pid && commandOf(pid).includes('zygote.py'),
  );
}

/** The processes of the kernel host that the guardian has started: the zygote and its children. */
function hostProcesses(guardian: ProcessFact): ProcessFact[] {
  return descendants(guardian.pid).filter(({ pid }) => commandOf(pid).includes('zygote.py'));
}

/** Processes of the kernel host that judge syntax. Such a process takes its name when it has given up its rights. */
function judges(guardian: ProcessFact): ProcessFact[] {
  return hostProcesses(guardian).filter(({ name }) => name === 'troupe-syntax');
}

/** Resolves with the process that judges short code. Beside it the host has processes that wait for their work. */
function theJudge(guardian: ProcessFact): Promise<ProcessFact> {
  return eventually('the judge is there', () => judges(guardian)[0]);
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

test('the parser accepts exactly the code that Python accepts', async (t) => {
  const { judge } = await startJudge(t);
  for (const [code, parses] of Object.entries(CODES)) {
    assert.equal(await judge.allParse([code], 'ws_a'), parses, JSON.stringify(code));
    assert.equal(await judge.allParse(['ok = 1', code], 'ws_a'), parses, JSON.stringify(code));
  }
});

test('the parsing process has given up all unneeded rights', async (t) => {
  const { judge, guardian } = await startJudge(t);
  assert.equal(await judge.allParse(['x = "\\N{BULLET}"'], 'ws_a'), true);
  const { pid } = await theJudge(guardian);
  const status = readFileSync(`/proc/${pid}/status`, 'latin1');
  for (const line of ['NoNewPrivs:\t1', 'Seccomp:\t2', `CapEff:\t${'0'.repeat(16)}`])
    assert.ok(status.includes(line), status);
});

test('a notebook that was checked before is answered at once', async (t) => {
  const { judge } = await startJudge(t);
  assert.equal(await judge.allParse(['x = 1', 'y = 2'], 'ws_a'), true);
  assert.equal(judge.allParse(['y = 2', 'x = 1', ''], 'ws_a'), true);
  assert.equal(await judge.allParse(['x = ('], 'ws_a'), false);
  assert.equal(judge.allParse(['never seen', 'x = ('], 'ws_a'), false);
});

test('code that breaks the parser does not parse, and the next question is answered', async (t) => {
  const { judge } = await startJudge(t);
  const hostile = [
    `${'('.repeat(200_000)}`,
    `x = ${'-'.repeat(500_000)}1`,
    `${'['.repeat(90)}${']'.repeat(90)}`,
  ];
  const answers = await Promise.all([
    ...hostile.map((code) => judge.allParse([code], 'ws_a')),
    judge.allParse(['fine = 1'], 'ws_a'),
  ]);
  assert.deepEqual(answers, [false, false, true, true]);
});

test('a question that is lost with the kernel host is sent to its successor', async (t) => {
  const { judge, guardian } = await startJudge(t);
  assert.equal(await judge.allParse(['x = 1'], 'ws_a'), true);
  process.kill((await theJudge(guardian)).pid, 'SIGSTOP');
  const answers = Promise.all([judge.allParse(['y = 1'], 'ws_a'), judge.allParse(['y = ('], 'ws_a')]);
  process.kill(guardian.pid, 'SIGKILL');
  assert.deepEqual(await answers, [true, false]);
});

test('questions are answered even when a kernel host hangs', async (t) => {
  const { judge, guardian } = await startJudge(t);
  await theJudge(guardian); // the process exists before the first question
  const zygote = hostProcesses(guardian).find(({ parent }) => parent === guardian.pid);
  process.kill(zygote!.pid, 'SIGSTOP');
  t.after(() => process.kill(zygote!.pid, 'SIGCONT'));
  assert.equal(await judge.allParse(['x = 1'], 'ws_a'), true);
});

test('a closed judge returns false for notebooks that it has not judged', async (t) => {
  const { judge } = await startJudge(t);
  const asked = judge.allParse(['x = 1'], 'ws_a');
  judge[Symbol.dispose]();
  assert.equal(await asked, false);
  assert.equal(await judge.allParse(['y = 1'], 'ws_a'), false);
});

test('a workspace with many questions does not delay other workspaces, because workspaces take turns', async (t) => {
  const { judge, guardian } = await startJudge(t);
  assert.equal(await judge.allParse(['x = 1'], 'ws_a'), true);
  const child = await theJudge(guardian);
  process.kill(child.pid, 'SIGSTOP');
  const order: string[] = [];
  const ask = async (name: string, workspaceId: string) => {
    assert.equal(await judge.allParse([`${name} = 1`], workspaceId), true);
    order.push(name);
  };
  const many = Array.from({ length: 5 }, (_, i) => ask(`many${i}`, 'ws_a'));
  const neighbours = [ask('first', 'ws_b'), ask('second', 'ws_c'), ask('third', 'ws_b')];
  process.kill(child.pid, 'SIGCONT');
  await Promise.all([...many, ...neighbours]);
  assert.deepEqual(order, ['many0', 'many1', 'first', 'second', 'many2', 'third', 'many3', 'many4']);
});

test('a workspace may have as many waiting questions as the limit, and one more is refused', async (t) => {
  const { judge } = await startJudge(t);
  const answers = Array.from({ length: 1 + 1024 }, (_, i) => judge.allParse([`x${i} = 1`], 'ws_a'));
  await assert.rejects(async () => judge.allParse(['more = 1'], 'ws_a'), { code: 'unavailable' });
  assert.equal(await judge.allParse(['neighbour = 1'], 'ws_b'), true);
  assert.ok((await Promise.all(answers)).every(Boolean));
});

test('code with more characters than the common process checks gets a process of its workspace', async (t) => {
  const { judge, guardian, long } = await startJudge(t);
  const ofLength = (length: number) => `x = "${'y'.repeat(length - 6)}"`;
  assert.equal(await judge.allParse([ofLength(MAX_SHARED_CHARS)], 'ws_a'), true);
  assert.equal(long.length, 0);
  const shared = await theJudge(guardian);
  process.kill(shared.pid, 'SIGSTOP');
  assert.equal(await judge.allParse([ofLength(MAX_SHARED_CHARS + 1)], 'ws_a'), true);
  assert.equal(await judge.allParse([ofLength(MAX_SHARED_CHARS - 4), 'y = ('], 'ws_a'), false);
  assert.deepEqual(
    long.map((codes) => codes.length),
    [1, 2],
  );
  await eventually('they are gone', () => judges(guardian).length === 1);
  process.kill(shared.pid, 'SIGCONT');
});

test('long code counts as unparsable if its check takes more memory than the processes of a workspace may have together', async (t) => {
  const code = `x = [${'1,'.repeat(2 ** 18)}]`; // some 250 MiB as a tree
  for (const [limitMib, parses] of [
    [700, true],
    [230, null],
  ] as const) {
    const host = await startTestHost({ limits: { memoryBytes: limitMib * 2 ** 20 } });
    t.after(() => host[Symbol.asyncDispose]());
    const answer = await host.host.checkSyntax([code], '/files');
    assert.equal(answer === null || answer[0] === false ? null : answer[0], parses, `${limitMib} MiB`);
  }
});

test('good code that was checked together with code that breaks the parser is checked again', async (t) => {
  const { judge } = await startJudge(t);
  assert.equal(await judge.allParse(['good = 1', `x = ${'-'.repeat(60_000)}1`], 'ws_a'), false);
  assert.equal(await judge.allParse(['good = 1'], 'ws_b'), true);
});
