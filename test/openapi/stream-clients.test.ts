// tier: whole, because it generates, installs and compiles clients
/**
 * Event streams with the clients that people use: they follow a session over a network that cuts their connections in the
 * middle of runs, continue by the rule of docs/api.md, and end when the session closes.
 */
import assert from 'node:assert/strict';
import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { cpSync, mkdtempSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import test, { type TestContext } from 'node:test';
import { PACKAGE_ROOT } from '#src/base/install/package-root.ts';
import type { NotebookStreamEvent } from '#src/contract/wire/events.ts';
import { openNotebook } from '#test/support/notebook-fixture.ts';
import { eventually } from '#test/support/processes.ts';
import { OWNER, startServer } from '#test/support/server-fixture.ts';
import { startCuttingProxy } from '#test/support/stand-ins/cutting-proxy.ts';

const GENERATORS = join(PACKAGE_ROOT, '.setup/generators');
const PROGRAMS = join(PACKAGE_ROOT, 'test/openapi/programs');
const CLIENTS = [
  // Each of its connections reaches any of the workers, most often one in which the session does not live.
  { name: 'eventsource', command: process.execPath, program: 'event-source.mjs', workers: '3' },
  {
    name: '@microsoft/fetch-event-source',
    command: process.execPath,
    program: 'fetch-event-source.mjs',
    workers: undefined,
  },
  {
    name: 'httpx-sse',
    command: join(GENERATORS, 'venv/bin/python'),
    program: 'httpx_stream.py',
    workers: undefined,
  },
] as const;
const ROUNDS = 4;

/** The heartbeat is the default one: a cell is silent for longer than clients wait. */
const SETTINGS = { TROUPE_HEARTBEAT_S: '2.5' };
const usual = await startServer(test, SETTINGS);

/** The state that a client builds from the events of a stream, as docs/api.md describes it. */
class Follower {
  readonly texts: string[] = [];
  readonly statuses: string[] = [];
  snapshots = 0;
  #isContinuing = false;

  take(event: NotebookStreamEvent): void {
    if (event.type === 'session.snapshot') {
      this.snapshots++;
      this.#isContinuing = event.resumed === true;
      if (!this.#isContinuing) assert.equal(this.snapshots, 1, 'the server had everything that was missed');
    }
    if (this.#isContinuing && event.missed !== true) {
      if (event.type === 'session.replayed') this.#isContinuing = false;
      return;
    }
    if (event.type === 'console-output') this.texts.push(event.data.text);
    if (event.type === 'run-status') this.statuses.push(event.data.status);
  }
}

function start(t: TestContext, command: string, args: readonly string[], streamUrl: string) {
  const { PATH, HOME } = process.env;
  const env = { PATH, HOME, STREAM_URL: streamUrl, TOKEN: OWNER.token, WORKSPACE: OWNER.workspaceId };
  const child: ChildProcess = spawn(command, [...args], { env, stdio: ['ignore', 'pipe', 'inherit'] });
  t.after(() => child.kill('SIGKILL'));
  return child;
}

for (const { name, command, program, workers } of CLIENTS) {
  test(`${name} misses no event and gets no event twice when its connection breaks in the middle of runs`, async (t) => {
    const folder = mkdtempSync(join(GENERATORS, 'made-'));
    t.after(() => rmSync(folder, { recursive: true, force: true }));
    cpSync(join(PROGRAMS, program), join(folder, program));
    const server =
      workers === undefined ? usual : await startServer(t, { ...SETTINGS, TROUPE_WORKERS: workers });
    const proxy = await startCuttingProxy(t, server.baseUrl);
    const notebook = await openNotebook(server, {
      a: '1',
      silent: 'import time as _time\n_time.sleep(6)\nprint("end")',
    });
    const path = `/api/v3/notebook-sessions/${notebook.id}/events`;
    const child = start(t, command, [join(folder, program)], proxy.baseUrl + path);
    const exit = once(child, 'exit');
    const follower = new Follower();
    createInterface({ input: child.stdout! }).on('line', (line) => follower.take(JSON.parse(line)));
    await eventually('the snapshot', () => follower.snapshots === 1);
    for (let round = 0; round < ROUNDS; round++) {
      const code = `import time as _time\nfor _i in range(3):\n    print("${round}", _i, flush=True)\n    _time.sleep(0.1)`;
      const run = notebook.run({ type: 'cells', cells: [{ cellId: 'a', code }] });
      await eventually('the run prints', () => follower.texts.join('').includes(`${round} 0\n`));
      const before = proxy.connections;
      proxy.cut();
      assert.equal((await run).status, 'completed');
      await eventually('the client is back', () => proxy.connections > before);
      await eventually('the end of the run', () => follower.statuses.length === 2 * (round + 1));
    }
    const connections = proxy.connections;
    await notebook.run(['silent']);
    await eventually('the end of the silent run', () => follower.texts.join('').endsWith('end\n'));
    assert.equal(proxy.connections, connections, 'nobody took the silence for a lost connection');
    await notebook.close();
    const [code] = await exit;
    assert.equal(code, 0, 'the client ended by itself');
    const expected = Array.from({ length: ROUNDS }, (_, n) => `${n} 0\n${n} 1\n${n} 2\n`).join('');
    assert.equal(follower.texts.join(''), `${expected}end\n`);
    assert.deepEqual(
      follower.statuses,
      Array.from({ length: ROUNDS + 1 }, () => ['running', 'completed']).flat(),
    );
    assert.equal(follower.snapshots, ROUNDS + 1);
  });
}

test('curl shows the stream as it arrives, continues after the last event, and ends with the session', async (t) => {
  const notebook = await openNotebook(usual, { a: 'print("one")', b: 'print("two")' });
  const url = `${usual.baseUrl}/api/v3/notebook-sessions/${notebook.id}/events`;
  const headers = [`Authorization: Bearer ${OWNER.token}`, `Service-Workspace-Id: ${OWNER.workspaceId}`];
  const curl = (...more: readonly string[]) => {
    const args = [...headers.flatMap((header) => ['-H', header]), ...more];
    const child = start(t, 'curl', ['-sN', '-w', '%{http_code}', ...args, url], url);
    const shown = { text: '' };
    child.stdout!.setEncoding('utf8').on('data', (text: string) => {
      shown.text += text;
    });
    return { child, shown, exit: once(child, 'close') };
  };
  const first = curl();
  await eventually('the state', () => first.shown.text.includes('session.replayed'));
  await notebook.run(['a']);
  await eventually('the end of the run', () => first.shown.text.includes('"status":"completed"'));
  first.child.kill();
  await first.exit;
  const id = /\nid: (\S+)\n[^\n]+\n\n$/.exec(first.shown.text.replace(/^:\n/gm, ''))?.[1];
  await notebook.run(['b']);
  const second = curl('-H', `Last-Event-ID: ${id}`);
  await eventually('the state again', () => second.shown.text.includes('session.replayed'));
  const missed = second.shown.text.split('\n').filter((line) => line.endsWith('"missed":true}'));
  assert.deepEqual(
    missed.flatMap((line) => /"text":"(.*?)\\n"/.exec(line)?.[1] ?? []),
    ['two'],
  );
  await notebook.close();
  await second.exit;
  assert.match(second.shown.text, /"type":"session\.closed".*\n\n200$/);
  const third = curl();
  await third.exit;
  assert.equal(third.shown.text, '204');
});
