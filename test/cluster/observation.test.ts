import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { ServerState } from '#src/contract/wire/server.ts';
import {
  mergeLines,
  type OwnObservation,
  observeCluster,
} from '#src/operate/operators/cluster-observation.ts';
import { testCluster } from '#test/support/test-cluster.ts';

/** The state of a worker, in which all figures are multiples of the worker's number. */
function stateOf(worker: number): ServerState {
  return {
    sampledAt: '2026-01-31T12:00:00.000Z',
    startedAt: `2026-01-31T11:00:0${9 - worker}.000Z`,
    versions: { troupe: '0.1.0', node: 'v20', marimo: '1' },
    process: {
      pid: 100 + worker,
      cpuSeconds: worker,
      memoryBytes: worker * 10,
      heapBytes: worker * 5,
      eventLoop: { busySeconds: worker, delayP99Ms: worker === 1 ? null : worker, delayMaxMs: worker },
    },
    kernelHost: { state: 'up', confinement: 'full' },
    kernels: [
      {
        workspaceId: `ws_${worker}`,
        sessionId: `nb_${worker}`,
        node: null,
        pid: worker,
        cpuSeconds: 1,
        memoryBytes: 1,
      },
    ],
    actors: [
      { kind: 'run', state: 'running.active', count: worker },
      ...(worker === 2 ? [{ kind: 'environment', state: 'open', count: 1 }] : []),
    ],
    requests: worker,
    streams: worker * 2,
    warnings: ['The disk is nearly full.', ...(worker === 2 ? ['One record is damaged.'] : [])],
    store: {
      usedBytes: 4096,
      reusableBytes: 0,
      isFull: worker === 2,
      commitMs: worker === 0 ? null : worker,
    },
    limits: {
      sessions: null,
      sessionsPerWorkspace: null,
      runsPerWorkspace: null,
      streamsPerWorkspace: null,
      connections: 10,
      kernelMemoryBytes: null,
      idleTimeoutS: null,
    },
  };
}

function observationOf(worker: number): OwnObservation {
  return {
    metrics: async () => `# TYPE number gauge\n# HELP number Number.\nnumber ${worker}\n# EOF\n`,
    state: async () => stateOf(worker),
    watched: async () => stateOf(worker),
    log: () => [`{"time":"2026-01-01T00:00:0${worker}.000Z","worker":${worker}}`],
  };
}

const primaryLog = async () => ['{"time":"2026-01-01T00:00:00.500Z","msg":"a worker has ended"}'];

test('the state, the metrics and the log cover the whole server, whichever worker is asked', async () => {
  const workers = testCluster(3, () => 0);
  const observed = workers.map((worker) => observeCluster(observationOf(worker.worker), worker, primaryLog));
  for (const { state, metrics, log } of observed) {
    const whole = await state();
    assert.equal(whole.process.cpuSeconds, 3);
    assert.deepEqual(whole.process.eventLoop, { busySeconds: 3, delayP99Ms: 2, delayMaxMs: 2 });
    assert.equal(whole.startedAt, '2026-01-31T11:00:07.000Z');
    assert.deepEqual([whole.requests, whole.streams, whole.kernels.length], [3, 6, 3]);
    assert.deepEqual(whole.actors, [
      { kind: 'environment', state: 'open', count: 1 },
      { kind: 'run', state: 'running.active', count: 3 },
    ]);
    assert.deepEqual([whole.store.isFull, whole.store.commitMs], [true, 2]);
    assert.deepEqual(
      whole.workers?.map(({ worker, pid, kernels }) => [worker, pid, kernels]),
      [0, 1, 2].map((worker) => [worker, 100 + worker, 1]),
    );
    assert.equal(whole.silentWorkers, 0);
    assert.match(
      await metrics(),
      /HELP number Number\.\nnumber\{worker="0"\} 0\nnumber\{worker="1"\} 1\nnumber\{worker="2"\} 2\n/,
    );
    const { items } = await log();
    assert.deepEqual(
      items.map((line) => (JSON.parse(line) as { worker?: number }).worker),
      [0, undefined, 1, 2],
    );
  }
});

test('a worker that does not answer is counted as silent', async () => {
  const [worker] = testCluster(3, () => 0);
  const { state, metrics, log } = observeCluster(
    observationOf(1),
    { ...worker!, askOthers: async () => [] },
    primaryLog,
  );
  assert.equal((await state()).silentWorkers, 2);
  assert.equal((await log()).silentWorkers, 2);
  assert.match(await metrics(), /troupe_workers\{state="silent"\} 2\n/);
});

test('lines of several logs are sorted by time, and a line without a time stays after its predecessor', () => {
  const at = (second: number, text: string) => `{"time":"2026-01-01T00:00:0${second}.000Z","msg":"${text}"}`;
  const merged = mergeLines([
    [at(1, 'a'), 'no time', at(4, 'd')],
    [at(2, 'b'), at(3, 'c')],
  ]);
  assert.deepEqual(merged, [at(1, 'a'), 'no time', at(2, 'b'), at(3, 'c'), at(4, 'd')]);
  const many = Array.from({ length: 400 }, (_, n) => at(5, String(n)));
  assert.equal(mergeLines([many, many]).length, 500);
});
