import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { test } from 'node:test';
import type { ServerState } from '#src/contract/wire/server.ts';
import { FullScreen, type ScreenDevice } from '#src/faces/cli/full-screen.ts';
import { widthOf } from '#src/faces/cli/show/width.ts';
import { styleOf } from '#src/faces/cli/style.ts';
import { topSample } from '#src/faces/cli/top/top-sample.ts';
import { topLines } from '#src/faces/cli/top/top-view.ts';
import { openNotebook } from '#test/support/notebook-fixture.ts';
import { OWNER, startServer } from '#test/support/server-fixture.ts';
import { troupe } from './captured-terminal.ts';
import { MAIN } from './troupe-process.ts';

const server = await startServer(test);
const env = {
  SERVICE_BASE_URL: server.baseUrl,
  SERVICE_ACCESS_TOKEN: OWNER.token,
  SERVICE_WORKSPACE_ID: OWNER.workspaceId,
};

test('a single reading names the kernel that uses the most memory or processor time, as text and as JSON', async () => {
  const [busy, idle] = await Promise.all([
    openNotebook(server, { a: 'while True: pass' }),
    openNotebook(server, { a: '1' }),
  ]);
  const run = await busy.submit(['a']);
  const { exitCode, out } = await troupe(['top', '--once'], { env });
  assert.equal(exitCode, 0);
  const [heading = '', first = '', second = ''] = out.slice(out.indexOf('CPU  ')).split('\n');
  assert.match(heading, /MEMORY +PID +SESSION +WORKSPACE/);
  assert.match(first, new RegExp(`^ *[\\d.]+% .* ${busy.id} `));
  assert.match(second, new RegExp(idle.id));
  assert.ok(!out.includes('\u001b'));
  const json = JSON.parse((await troupe(['top', '--once', '--json'], { env })).out) as ReturnType<
    typeof topSample
  >;
  const [most, least] = json.kernels;
  assert.equal(most?.sessionId, busy.id);
  assert.ok(most.cpuShare > (least?.cpuShare ?? 1));
  await server.client.runs.cancel(run);
  await server.client.waitForRun(run);
  await Promise.all([busy.close(), idle.close()]);
});

test('a token that may not observe the server gets an error that names the missing scope', async () => {
  const { token } = await server.client.accessTokens.create({
    name: 'plain',
    scopes: ['workspaceRuntime:connect'],
  });
  const { exitCode, err } = await troupe(['top', '--once'], { env: { ...env, SERVICE_ACCESS_TOKEN: token } });
  assert.equal(exitCode, 1);
  assert.match(err, /server:observe/);
});

/**
 * A state with this many kernels. The n-th kernel has used n tenths of a second more than in the
 * previous state.
 */
function stateWith(kernels: number, second: number): ServerState {
  return {
    sampledAt: `2026-01-31T12:00:0${second}.000Z`,
    startedAt: '2026-01-31T11:00:00.000Z',
    versions: { troupe: '0.1.0', node: 'v20', marimo: '1' },
    process: {
      pid: 1,
      cpuSeconds: second / 2,
      memoryBytes: 2 ** 27,
      heapBytes: 2 ** 26,
      eventLoop: { busySeconds: second / 4, delayP99Ms: 11, delayMaxMs: 12 },
    },
    kernelHost: { state: 'up', confinement: 'full' },
    kernels: Array.from({ length: kernels }, (_, n) => ({
      workspaceId: 'ws_1',
      sessionId: `nb_${n}`,
      node: null,
      pid: 100 + n,
      cpuSeconds: (second * n) / 10,
      memoryBytes: 2 ** 20 * (n + 1),
    })),
    actors: [{ kind: 'run', state: 'running.active', count: 1 }],
    requests: 0,
    streams: 0,
    warnings: [],
    store: { usedBytes: 2 ** 24, reusableBytes: 0, isFull: false, commitMs: null },
    limits: {
      sessions: null,
      sessionsPerWorkspace: null,
      runsPerWorkspace: null,
      streamsPerWorkspace: null,
      connections: null,
      kernelMemoryBytes: 2 ** 31,
      idleTimeoutS: null,
    },
  };
}

test('a share of processor time is of the time between two readings, or of the time since a new kernel started', () => {
  const before = { ...stateWith(3, 1), kernels: stateWith(2, 1).kernels };
  const sample = topSample(before, stateWith(3, 2));
  assert.equal(sample.cpuShare, 0.5);
  assert.equal(sample.busyShare, 0.25);
  assert.deepEqual(
    sample.kernels.map(({ sessionId, cpuShare }) => [sessionId, Math.round(cpuShare * 10)]),
    [
      ['nb_2', 4],
      ['nb_1', 1],
      ['nb_0', 0],
    ],
  );
});

test('a kernel on a node is shown with the name of the node before its process', () => {
  const onNode = (state: ServerState) => ({
    ...state,
    kernels: state.kernels.map((kernel) => ({ ...kernel, node: 'rack-7' })),
  });
  const sample = topSample(onNode(stateWith(1, 1)), onNode(stateWith(1, 2)));
  const lines = topLines(sample, { columns: 80, rows: 24 }, styleOf(false));
  assert.match(lines.join('\n'), / rack-7:100 +nb_0 /);
});

for (const [columns, rows] of [
  [80, 24],
  [40, 12],
  [12, 5],
  [1, 1],
] as const) {
  test(`nothing is written outside of a terminal of ${columns} columns and ${rows} rows`, () => {
    const lines = topLines(topSample(stateWith(50, 1), stateWith(50, 2)), { columns, rows }, styleOf(true));
    assert.ok(lines.length <= rows, String(lines.length));
    for (const line of lines) assert.ok(widthOf(line) <= columns, line);
    if (columns >= 40) assert.match(lines.at(-1) ?? '', /^and \d+ more$/);
  });
}

test('each picture is one write that does not clear the screen first, and leaving restores the terminal once', () => {
  const written: string[] = [];
  let leave = () => {};
  const device: ScreenDevice = {
    write: (text) => void written.push(text),
    size: () => ({ columns: 20, rows: 5 }),
    watch(_, onLeave) {
      leave = onLeave;
      return { [Symbol.dispose]: () => {} };
    },
  };
  const screen = new FullScreen(device, () => {});
  screen.draw(['one\u001b]0;title\u0007', 'two']);
  leave();
  screen.draw(['three']);
  screen[Symbol.dispose]();
  assert.deepEqual(written, [
    '\u001b[?1049h\u001b[?25l',
    '\u001b[Hone\u001b[K\r\ntwo\u001b[K\u001b[J',
    '\u001b[?25h\u001b[?1049l',
  ]);
});

/**
 * Runs `troupe top` on a real terminal, does `act` once it shows kernels, and prints the state in which it left the
 * terminal.
 */
const ON_A_TERMINAL = `
import json, os, pty, signal, sys
main, act = sys.argv[1], sys.argv[2]
pid, fd = pty.fork()
if pid == 0:
    os.execvp("node", ["node", main, "top", "--interval", "0.2"])
out, acted = b"", False
while True:
    try:
        piece = os.read(fd, 65536)
    except OSError:
        break
    if not piece:
        break
    out += piece
    if not acted and b"kernels" in out:
        acted = True
        if act == "q": os.write(fd, b"q")
        elif act == "ctrl-c": os.write(fd, b"\\x03")
        else: os.kill(pid, getattr(signal, act))
_, status = os.waitpid(pid, 0)
print(json.dumps({"out": out.decode(), "status": os.waitstatus_to_exitcode(status)}))
`;

for (const [act, status] of [
  ['q', 0],
  ['ctrl-c', 130],
  ['SIGTERM', 130],
  ['SIGHUP', 129],
] as const) {
  test(`the terminal is restored when troupe top ends by ${act}`, async () => {
    const child = spawn('python3', ['-c', ON_A_TERMINAL, MAIN, act], {
      env: { PATH: process.env.PATH ?? '', TERM: 'xterm-256color', ...env },
      stdio: ['ignore', 'pipe', 'inherit'],
    });
    let text = '';
    for await (const piece of child.stdout) text += String(piece);
    const ended = JSON.parse(text) as { out: string; status: number };
    assert.equal(ended.status, status);
    assert.ok(ended.out.startsWith('\u001b[?1049h\u001b[?25l'), 'it fills the screen');
    assert.equal(ended.out.split('\u001b[?25h\u001b[?1049l').length, 2, 'it restores it once');
    assert.ok(!ended.out.includes('\u001b[2J'), 'it never clears the screen');
  });
}

test('a warning of the server, such as the warning of a failed backup, is shown', () => {
  const text = 'The latest backup could not be made: look into the log.';
  const state = { ...stateWith(1, 1), warnings: [text] };
  const lines = topLines(topSample(state, state), { columns: 100, rows: 20 }, styleOf(false));
  assert.ok(lines.includes(`WARNING  ${text}`), lines.join('\n'));
});
