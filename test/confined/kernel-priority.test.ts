// own kernel host: it looks at the processes and the end of the host
import assert from 'node:assert/strict';
import { existsSync, readFileSync } from 'node:fs';
import { getPriority } from 'node:os';
import { after, before, test } from 'node:test';
import { descriptorsOf } from '#test/escape/process-table.ts';
import { eventually } from '#test/support/processes.ts';
import { descendantsOf, openKernel, startTestHost, type TestHost, TestKernel } from './kernel-fixture.ts';

const NICE = 7;
const hasAutogroups = existsSync('/proc/self/autogroup');

let host: TestHost;
before(async () => {
  host = await startTestHost({ limits: { nice: NICE } });
});
after(() => host[Symbol.asyncDispose]());

function kernels(): number[] {
  const isKernel = (pid: number) => readFileSync(`/proc/${pid}/comm`, 'utf8') === 'troupe-kernel\n';
  return descendantsOf(process.pid).filter(isKernel);
}

const sessionNiceness = (pid: number) =>
  / nice (-?\d+)/.exec(readFileSync(`/proc/${pid}/autogroup`, 'utf8'))?.[1];

const hasPriorityOpen = (pid: number) =>
  [...descriptorsOf(pid).values()].some((target) => target.endsWith('/autogroup'));

test('the niceness of a kernel is higher than that of its server by the value of the setting', async () => {
  const kernel = await openKernel(host, { a: '1' });
  await kernel.run(['a']);
  const expected = Math.min(getPriority() + NICE, 19); // the tests may run in a shell that is nice already
  assert.deepEqual(kernels().map(getPriority), [expected]);
  kernel.kernel.kill();
  await kernel.exited;
});

test("where Linux groups processes by session, each kernel's session has low priority, also when several start at once", {
  skip: hasAutogroups ? false : 'this Linux has no autogroups',
}, async () => {
  const started = Array.from({ length: 6 }, () => new TestKernel(host, { a: '1' }));
  await Promise.all(started.map((kernel) => kernel.ready));
  await Promise.all(started.map((kernel) => kernel.run(['a'])));
  await eventually('every session of a kernel gives way', () => {
    const found = kernels().map(sessionNiceness);
    return found.length === started.length && found.every((nice) => nice === String(NICE));
  });
  await eventually('no kernel has the file open any more', () => !kernels().some(hasPriorityOpen));
  for (const kernel of started) kernel.kernel.kill();
  await Promise.all(started.map((kernel) => kernel.exited));
});
