// own kernel host: it looks at the start of the host
// tier: whole, because it kills, fills and restarts servers of several processes
/** The warm-up of a server: it carries out runs of its own, gives way to users, and leaves nothing behind. */
import assert from 'node:assert/strict';
import { mkdtempSync, readdirSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { type TestContext, test } from 'node:test';
import { loadConfig } from '#src/base/config/config.ts';
import { openLog } from '#src/base/log/log.ts';
import type { App } from '#src/start/app/app-interface.ts';
import { openPrerequisites } from '#src/start/app/prerequisites.ts';
import { createApp } from '#src/start/app.ts';
import { ALL_STEPS, WarmUp, type WarmUpOptions } from '#src/start/process/warm-up.ts';
import { startServerProcess } from '#test/support/child-server.ts';
import { eventually } from '#test/support/processes.ts';
import { removeAfter } from '#test/support/remove-folder.ts';
import { pythonOfTests, SETTINGS } from '#test/support/server-fixture.ts';

/** How often a warm-up that waits must have looked at the server before it counts as waiting. */
const LOOKS = 3;
const PATIENCE_MS = 60_000;
const within = (what: string, fact: () => boolean) => eventually(what, fact, PATIENCE_MS);

test('a warm-up carries out all of its steps and leaves no files, commits, counts or kernels', async (t) => {
  const { app, options, dataDir, log, counts } = await start(t);
  const before = { files: filesOf(dataDir), counts: counts() };
  const lines = log.length;
  const warmUp = new WarmUp({ ...options, app });
  await warmUp.ended;
  assert.equal(warmUp.steps, ALL_STEPS);
  assert.deepEqual(filesOf(dataDir), before.files);
  assert.deepEqual(counts(), before.counts);
  assert.deepEqual(
    log.slice(lines).map(({ msg }) => msg),
    ['the warm-up has ended'],
  );
  assert.deepEqual(app.load(), { sessions: 0, runs: 0, streams: 0 });
  assert.equal(options.prerequisites.host.kernelCount, 0);
});

test('a warm-up begins no step while the server has a run, and continues after it', async (t) => {
  const { options } = await start(t);
  const server = watched();
  const warmUp = new WarmUp({ ...options, app: server.app });
  await within('some steps', () => warmUp.steps > 1);
  server.use();
  await within('the end of the step in progress', () => server.looks >= LOOKS);
  const { steps } = warmUp;
  await within('more looks at the server', () => server.looks >= 2 * LOOKS);
  assert.equal(warmUp.steps, steps);
  server.leave();
  await within('another step', () => warmUp.steps > steps);
  await warmUp.end();
});

test('a warm-up does not begin while requests come', async (t) => {
  const { options, dataDir } = await start(t);
  const files = filesOf(dataDir);
  let requests = 0;
  const app = { load: () => NO_LOAD, requestCount: () => ++requests };
  const warmUp = new WarmUp({ ...options, app });
  await within('some looks at the server', () => requests > LOOKS);
  assert.deepEqual(filesOf(dataDir), files);
  await warmUp.end();
  assert.equal(warmUp.steps, 0);
});

test('a server counts each incoming request, because the warm-up waits for quiet', async (t) => {
  const { app } = await start(t);
  const before = app.requestCount();
  await (await fetch(`${app.url}/healthz`)).text();
  assert.equal(app.requestCount(), before + 1);
});

test('a warm-up that is ended early leaves no traces', async (t) => {
  const { options, dataDir } = await start(t);
  const files = filesOf(dataDir);
  const warmUp = new WarmUp({ ...options, app: watched().app });
  await within('a step', () => warmUp.steps > 0);
  await warmUp.end();
  assert.ok(warmUp.steps < ALL_STEPS);
  assert.deepEqual(filesOf(dataDir), files);
});

test('a warm-up ends in the middle of a step when its time is over, and leaves no traces', async (t) => {
  const { app, options, dataDir } = await start(t);
  const files = filesOf(dataDir);
  const warmUp = new WarmUp({ ...options, app: watched().app, limitMs: 150 });
  await warmUp.ended;
  assert.ok(warmUp.steps < ALL_STEPS);
  assert.deepEqual(filesOf(dataDir), files);
  assert.deepEqual(app.load(), NO_LOAD);
});

for (const workers of [1, 2]) {
  test(`a server of ${workers} workers warms each of its processes up`, async (t) => {
    const server = await startWarming(folder(t), workers);
    t.after(() => server.end('SIGTERM'));
    const ends = () => server.log.filter(({ msg }) => msg === 'the warm-up has ended');
    await within('all ends', () => ends().length === workers);
    assert.deepEqual(
      ends().map(({ steps }) => steps),
      Array.from({ length: workers }, () => ALL_STEPS),
    );
  });
}

test('a server that is stopped during its warm-up ends in order', async (t) => {
  const dataDir = folder(t);
  const server = await startWarming(dataDir, 1);
  t.after(() => server.end('SIGKILL'));
  await within('its folder', () => filesOf(dataDir).some((path) => path.includes('warm-up')));
  const { code } = await server.end('SIGTERM');
  assert.equal(code, 0);
  assert.deepEqual(
    server.log.filter(({ level }) => level === 'warn' || level === 'error'),
    [],
  );
  assert.deepEqual(
    filesOf(dataDir).filter((path) => path.includes('warm-up')),
    [],
  );
});

const NO_LOAD = { sessions: 0, runs: 0, streams: 0 };
const NO_NODES = { TROUPE_KERNEL_NODES: 'none' };

/** Starts a server of its own process that warms itself up. */
function startWarming(dataDir: string, workers: number) {
  const settings = { TROUPE_WARM_UP: 'true', TROUPE_WORKERS: String(workers), TROUPE_LOG_LEVEL: 'debug' };
  return startServerProcess(dataDir, { ...SETTINGS, ...NO_NODES, ...pythonOfTests(), ...settings });
}

/** Starts a server in this process that has had no request. */
async function start(t: TestContext) {
  const dataDir = folder(t);
  const settings = {
    ...SETTINGS,
    ...NO_NODES,
    ...pythonOfTests(),
    TROUPE_DATA_DIR: dataDir,
    TROUPE_WORKERS: '1',
  };
  const { config } = loadConfig(settings, { cwd: dataDir });
  const log: { readonly msg: string }[] = [];
  const rootLog = openLog({
    level: 'debug',
    destination: { write: (line) => log.push(JSON.parse(line) as { readonly msg: string }) },
  });
  const prerequisites = await openPrerequisites(config, rootLog);
  const app: App = await createApp({
    config,
    log: rootLog,
    prerequisites,
    onFatal: (error) => assert.fail(error),
  });
  t.after(() => app[Symbol.asyncDispose]());
  await app.kernelsReady;
  const options: Omit<WarmUpOptions, 'app'> = { config, log: rootLog, prerequisites, createApp };
  const { requests, runs, transitions, kernelStarts, kernelEnds, commits } = prerequisites.metrics;
  const counted = [requests, runs, transitions, kernelStarts, kernelEnds, commits];
  const counts = () => counted.map((family) => JSON.stringify([...family.series()]));
  return { app, options, dataDir, log, counts };
}

/** Returns the view of a server that a test uses and leaves, and that counts how often it is looked at while it is used. */
function watched() {
  let runs = 0;
  let looks = 0;
  return {
    use() {
      runs = 1;
      looks = 0;
    },
    leave() {
      runs = 0;
    },
    get looks() {
      return looks;
    },
    app: {
      requestCount: () => 0,
      load() {
        looks++;
        return { ...NO_LOAD, runs };
      },
    },
  };
}

function folder(t: TestContext): string {
  const path = mkdtempSync(join(tmpdir(), 'troupe-warm-'));
  removeAfter(t, path);
  return path;
}

/** Returns the paths of all files and folders, without those that a start makes a little later. */
function filesOf(dataDir: string): string[] {
  return readdirSync(dataDir, { recursive: true, encoding: 'utf8' }).sort();
}
