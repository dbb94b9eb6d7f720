// own kernel host: it looks at the processes and the end of the host
/** How kernels end, and why some do not start. */
import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { eventually } from '#test/support/processes.ts';
import {
  descendantsOf,
  isAlive,
  openKernel,
  startTestHost,
  type TestHost,
  TestKernel,
} from './kernel-fixture.ts';

let host: TestHost;
before(async () => {
  host = await startTestHost();
});
after(() => host[Symbol.asyncDispose]());

test('a killed kernel is reported once, and all its processes end', async () => {
  const kernel = await openKernel(host, {
    a: 'import subprocess\nsubprocess.Popen(["sleep", "600"], start_new_session=True)\nprint("go")\nwhile True: pass',
  });
  const { pid } = await kernel.ready;
  const printed = kernel.printed('go');
  kernel.run(['a']).catch(() => {});
  await printed;
  const processes = [pid, ...descendantsOf(pid)];
  assert.ok(processes.length >= 2);
  kernel.kernel.kill();
  const exit = await kernel.exited;
  assert.deepEqual(exit, {
    cause: 'kernel_killed',
    code: null,
    signal: 'SIGKILL',
    message: 'The server killed the kernel.',
  });
  await eventually('the kernel and its child are gone', () => !processes.some(isAlive));
  kernel.kernel.kill();
  kernel.kernel.stop();
  assert.equal(kernel.exits.length, 1);
});

for (const [code, expected] of [
  ['import os\nos._exit(3)', { cause: 'kernel_exited', code: 3, signal: null }],
  ['import os\nos.kill(os.getpid(), 9)', { cause: 'kernel_killed', code: null, signal: 'SIGKILL' }],
  ['import ctypes\nctypes.string_at(0)', { cause: 'kernel_killed', code: null, signal: 'SIGSEGV' }],
] as const) {
  test(`a cell with ${code.split('\n')[1]} ends its kernel as ${expected.cause}`, async () => {
    const kernel = await openKernel(host, { a: `print("last words")\n${code}` });
    await assert.rejects(kernel.run(['a']), /the kernel ended/);
    const { cause, code: exitCode, signal } = await kernel.exited;
    assert.deepEqual({ cause, code: exitCode, signal }, expected);
  });
}

test('everything that a kernel sent before its end arrives, even at a slow server', async () => {
  const code =
    'import os, sys\nfor n in range(10):\n    print("x" * 9999)\n    sys.stdout._stream.flush_console()\nos._exit(3)';
  const kernel = await openKernel(host, { a: code });
  const takeSlowly = () => {
    const until = performance.now() + 100;
    while (performance.now() < until);
    return false;
  };
  for (const waiting of [kernel.run(['a']), kernel.next(takeSlowly)]) waiting.catch(() => {});
  await kernel.exited;
  assert.equal(kernel.stdout.length, 100_000);
});

test('a stopped kernel ends in an orderly way', async () => {
  const kernel = await openKernel(host, { a: 'x = 1' });
  kernel.kernel.stop();
  const exit = await kernel.exited;
  assert.deepEqual(exit, { cause: 'stopped', code: 0, signal: null, message: 'The kernel was stopped.' });
});

test('stopping a busy kernel first interrupts it, and kills it if it does not react', async () => {
  const [polite, deaf] = [
    await openKernel(host, { a: 'import time\nprint("go")\nwhile True: time.sleep(1)' }),
    await openKernel(host, {
      a: 'import time\nwhile True:\n    try:\n        print("go")\n        time.sleep(600)\n    except BaseException: pass',
    }),
  ];
  const started = [polite, deaf].map((kernel) => kernel.printed('go'));
  for (const kernel of [polite, deaf]) kernel.run(['a']).catch(() => {});
  await Promise.all(started);
  polite.kernel.stop();
  deaf.kernel.stop();
  const exits = await Promise.all([polite.exited, deaf.exited]);
  assert.deepEqual(
    exits.map(({ cause, signal }) => [cause, signal]),
    [
      ['stopped', null],
      ['stopped', 'SIGKILL'],
    ],
  );
});

test('a kernel that is killed before it is ready reports only its end', async () => {
  const kernel = new TestKernel(host, { a: '1' });
  kernel.kernel.kill();
  assert.equal(kernel.exits.length, 0);
  assert.equal((await kernel.exited).cause, 'kernel_killed');
  await assert.rejects(kernel.ready);
});

test('a kernel whose directory does not exist does not start', async () => {
  const kernel = new TestKernel({ ...host, work: '/nonexistent' }, { a: '1' });
  const { cause, code } = await kernel.exited;
  assert.deepEqual([cause, code], ['kernel_start_failed', 70]);
});

test("the reason for a failed start is in the log in full, and in the kernel's end without paths", async () => {
  const logged: object[] = [];
  const log = { info: () => {}, warn: (details: object) => logged.push(details), error: () => {} };
  await using logging = await startTestHost({ log });
  const kernel = new TestKernel({ ...logging, work: '/nonexistent' }, { a: '1' });
  const { message } = await kernel.exited;
  assert.equal(
    message,
    'The kernel did not start: its process exited with code 70 (FileNotFoundError: No such file or directory).',
  );
  assert.match(JSON.stringify(logged), /Traceback .*kernel_process\.py.*FileNotFoundError.*\/nonexistent/);
});

test('a working kernel logs nothing at its end, for any printed text', async () => {
  const logged: object[] = [];
  const log = { info: () => {}, warn: (details: object) => logged.push(details), error: () => {} };
  await using logging = await startTestHost({ log });
  const code = 'import os\nos.write(2, b"x" * 9000)\nos._exit(70)';
  const kernel = await openKernel(logging, { a: code });
  void kernel.run(['a']).catch(() => {});
  assert.equal((await kernel.exited).message, 'The kernel ended: its process exited with code 70.');
  assert.deepEqual(logged, []);
});
