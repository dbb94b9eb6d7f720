import assert from 'node:assert/strict';
import { release } from 'node:os';
import { after, before, test } from 'node:test';
import { eventually } from '#test/support/processes.ts';
import { isAlive, openKernel, parentOf, startTestHost, type TestHost } from './kernel-fixture.ts';

const [major = 0, minor = 0] = release().split('.').map(Number);
const cannotSignalPeers =
  major > 6 || (major === 6 && minor >= 5) ? false : 'Linux signals the process behind a socket from 6.5 on';

let host: TestHost;
before(async () => {
  host = await startTestHost();
});
after(() => host[Symbol.asyncDispose]());

test('an interrupt ends the run of its command, and only that run', async () => {
  const kernel = await openKernel(host, {
    loop: 'print("go")\nwhile True: pass\ndone = 1',
    after: 'done',
    fine: '1 + 1',
  });
  const started = kernel.printed('go');
  const run = kernel.run(['after', 'fine']);
  await started;
  assert.deepEqual([kernel.kernel.interrupt(), kernel.kernel.interrupt()], [true, true]);
  const { done, statuses } = await run;
  assert.deepEqual([done.interrupted, statuses.loop, statuses.after], [true, 'interrupted', 'cancelled']);
  assert.equal(kernel.kernel.interrupt(), false);
  const next = await kernel.run(['fine']);
  assert.deepEqual([next.done.interrupted, next.statuses.fine], [false, 'success']);
  kernel.kernel.kill();
});

test('an interrupt in the same turn as the command is not lost, and ends only that command', async () => {
  const kernel = await openKernel(host, { loop: 'while True: pass', fine: '1' });
  for (let round = 0; round < 5; round++) {
    const run = kernel.run(['loop']);
    kernel.kernel.interrupt();
    assert.equal((await run).done.interrupted, true);
    assert.equal((await kernel.run(['fine'])).statuses.fine, 'success');
  }
  for (const code of ['while True: pass', 'import asyncio\nawait asyncio.sleep(0)\nwhile True: pass']) {
    const call = kernel.outcome(() => kernel.kernel.scratchpad({ code, cells: [], runId: 'r' }));
    kernel.kernel.interrupt();
    assert.equal((await call).done.interrupted, true);
    assert.equal((await kernel.run(['fine'])).statuses.fine, 'success');
  }
  kernel.kernel.kill();
});

test('an interrupt that races with the end of its command never hits the next one', async () => {
  const kernel = await openKernel(host, {
    short: 'import time\ntime.sleep(0.002)',
    next: 'time.sleep(0.002)',
  });
  await kernel.run(['next']);
  for (let round = 0; round < 20; round++) {
    const begun = kernel.next((m) => m.op === 'execution' && m.phase === 'running');
    const run = kernel.run(['short']);
    await begun;
    const cancel = setTimeout(() => kernel.kernel.interrupt(), round % 5);
    await run;
    clearTimeout(cancel);
    const next = await kernel.run(['next']);
    assert.deepEqual([next.done.interrupted, next.statuses.next], [false, 'success']);
  }
  kernel.kernel.kill();
});

test('a run is interrupted and its kernel killed while the host is stopped', {
  skip: cannotSignalPeers,
}, async () => {
  await using stopped = await startTestHost();
  const kernel = await openKernel(stopped, { loop: 'print("go")\nwhile True: pass', fine: '1 + 1' });
  const { pid } = await kernel.ready;
  const started = kernel.printed('go');
  const run = kernel.run(['loop']);
  await started;
  const zygote = parentOf(pid);
  process.kill(zygote, 'SIGSTOP');
  kernel.kernel.interrupt();
  assert.equal((await run).done.interrupted, true);
  assert.equal((await kernel.run(['fine'])).statuses.fine, 'success');
  kernel.kernel.kill();
  await eventually('the kernel is gone', () => !isAlive(pid));
  process.kill(zygote, 'SIGCONT');
});
