/** The primary and its workers without processes. */
import assert from 'node:assert/strict';
import cluster, { type Worker } from 'node:cluster';
import { EventEmitter } from 'node:events';
import test, { type TestContext } from 'node:test';
import type { ToPrimary, ToWorker } from '#src/cluster/messages.ts';
import { Primary } from '#src/cluster/primary/primary.ts';
import { eventually } from '#test/support/processes.ts';
import { rememberingLog, temporaryDirectory } from '#test/support/store/temporary-store.ts';

/** A worker that obeys its primary. It serves once it has loaded its program. */
class ObedientWorker extends EventEmitter {
  readonly process = { pid: process.pid, kill: (signal: string) => this.#exit(null, signal) };
  #isConnected = true;

  isConnected(): boolean {
    return this.#isConnected;
  }

  load(): void {
    this.#tell({ op: 'loaded' });
  }

  die(): void {
    this.#exit(null, 'SIGKILL');
  }

  send(message: ToWorker): void {
    if (message.op === 'begin') this.#tell({ op: 'join', table: message.table.number });
    else if (message.op === 'table') this.#tell({ op: 'knows', table: message.table.number });
    else if (message.op === 'admit') this.#tell({ op: 'listening', url: 'http://127.0.0.1' });
    else if (message.op === 'drain') this.#tell({ op: 'suspended' });
    else if (message.op === 'finish') this.#exit(0, null);
  }

  #tell(message: ToPrimary): void {
    setImmediate(() => this.emit('message', message));
  }

  #exit(code: number | null, signal: string | null): void {
    if (!this.#isConnected) return;
    this.#isConnected = false;
    setImmediate(() => this.emit('exit', code, signal));
  }
}

function startPrimary(t: TestContext) {
  const workers: ObedientWorker[] = [];
  const hopeless: string[] = [];
  const { log, lines } = rememberingLog();
  t.mock.method(cluster, 'setupPrimary', () => undefined);
  t.mock.method(cluster, 'fork', () => {
    const worker = new ObedientWorker();
    workers.push(worker);
    return worker as unknown as Worker;
  });
  const primary = new Primary({
    size: 2,
    program: '',
    claim: 0,
    sockets: [],
    socketFolder: temporaryDirectory(t),
    log,
    took: () => undefined,
    ended: () => undefined,
    onHopeless: (problem) => hopeless.push(problem),
  });
  const errors = () => lines.filter(({ level }) => level === 'error').map(({ worker }) => worker);
  return { primary, workers, hopeless, errors };
}

test('a worker that is replaced before it serves is no failed start', async (t) => {
  const { primary, workers, hopeless, errors } = startPrimary(t);
  for (const worker of workers) worker.load();
  await primary.open(1);
  workers[0]?.die();
  await eventually('the dead worker is replaced', () => workers.length === 3);
  const replaced = primary.replaceAll(); // the second worker, and the third one, which loads its program
  for (const at of [3, 4]) {
    await eventually('a new worker is started', () => workers.length === at + 1);
    workers[at]?.load();
  }
  await replaced;
  assert.deepEqual([errors(), workers.length, hopeless], [[1], 5, []]);
  assert.equal(await primary.drain('SIGTERM'), true);
});
