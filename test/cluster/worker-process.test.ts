import assert from 'node:assert/strict';
import type { Worker } from 'node:cluster';
import { EventEmitter } from 'node:events';
import test from 'node:test';
import { type WorkerEnd, WorkerProcess } from '#src/cluster/primary/worker-process.ts';

/** A worker without a process, and the reports of it to its primary. */
function start() {
  const heard: (string | WorkerEnd)[] = [];
  let isConnected = true;
  const process = Object.assign(new EventEmitter(), { process: { pid: 1 }, isConnected: () => isConnected });
  let resolveEnd: () => void;
  const end = new Promise<void>((resolve) => {
    resolveEnd = resolve;
  });
  new WorkerProcess(1, process as unknown as Worker, {
    told: (_, { op }) => heard.push(op),
    ended: (_, how) => {
      heard.push(how);
      resolveEnd();
    },
  });
  const closeChannel = () => {
    isConnected = false;
  };
  return { process, heard, end, closeChannel };
}

test('the end of a worker is noticed even if Node.js reports no end of its channel', async () => {
  const { process, heard, end, closeChannel } = start();
  closeChannel();
  process.emit('exit', null, 'SIGKILL');
  await end;
  assert.deepEqual(heard, [{ code: null, how: 'signal SIGKILL' }]);
});

test('a message of a worker is handled before the end of that worker', async () => {
  const { process, heard, end, closeChannel } = start();
  process.emit('exit', 1, null);
  setImmediate(() => {
    process.emit('message', { op: 'failed', message: 'the port is taken' });
    closeChannel();
  });
  await end;
  assert.deepEqual(heard, ['failed', { code: 1, how: 'exit code 1' }]);
});
