import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import type { KernelExit } from '#src/confined/processes/exit-classification.ts';
import type { KernelSink } from '#src/confined/processes/kernel/kernel.ts';
import { openKernel, startTestHost, type TestHost } from './kernel-fixture.ts';

const logged: object[] = [];
const log = { info: () => {}, warn: () => {}, error: (details: object) => logged.push(details) };
let host: TestHost;
before(async () => {
  host = await startTestHost({ log });
});
after(() => host[Symbol.asyncDispose]());

/** A kernel for which the code that receives its messages, or its readiness, has a bug. */
function startMistaken(mistake: Partial<KernelSink>): Promise<KernelExit> {
  return new Promise((resolve) => {
    const launch = {
      id: 'mistaken',
      cwd: host.work,
      env: {},
      cells: [{ cellId: 'a', code: '1', config: {} }],
      appOptions: {},
    };
    host.host.startKernel(launch, { ready: () => {}, messages: () => {}, exited: resolve, ...mistake });
  });
}

for (const where of ['messages', 'ready'] as const) {
  test(`a bug of the server in handling a kernel's ${where} ends that kernel and nothing else`, async () => {
    const innocent = await openKernel(host, { a: '1' });
    const error = new TypeError('a mistake');
    const exit = await startMistaken({
      [where]: () => {
        throw error;
      },
    });
    assert.deepEqual(exit, {
      cause: 'kernel_protocol_error',
      code: null,
      signal: null,
      message: 'The kernel sent a message that the server could not read.',
    });
    assert.deepEqual(logged.splice(0), [{ err: error, kernel: 'mistaken' }]);
    assert.equal((await innocent.run(['a'])).statuses.a, 'success');
    assert.equal(host.host.state, 'up');
    innocent.kernel.kill();
  });
}
