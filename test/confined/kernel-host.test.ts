// own kernel host: it looks at the processes and the end of the host
// tier: whole, because it kills, fills and restarts servers of several processes
import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { copyFileSync, mkdirSync, mkdtempSync, readdirSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { createInterface } from 'node:readline';
import { test } from 'node:test';
import { KernelHostError } from '#src/confined/processes/host/host-error.ts';
import { findHostScript } from '#src/confined/processes/host/host-script.ts';
import { type StartZygote, type Zygote, ZygoteProcess } from '#src/confined/processes/host/zygote-process.ts';
import { eventually } from '#test/support/processes.ts';
import { isAlive, openKernel, PYTHON, parentOf, startTestHost, TestKernel } from './kernel-fixture.ts';

test('a started host reports its versions', async () => {
  await using host = await startTestHost();
  const { bootMs, confinement, layers, marimoDir, weight, ...hello } = host.hello;
  assert.deepEqual(
    { ...hello, python: hello.python.split('.')[0] },
    { marimo: '0.25.2', python: '3', supported: true, missing: [] },
  );
  assert.ok(bootMs > 0 && confinement.length > 0);
  assert.equal(weight !== null, confinement.includes('processors shared by workspaces'));
  assert.equal(layers.namespaces, /namespaces, /.test(confinement));
  assert.match(marimoDir, /\/marimo$/);
  assert.equal(host.host.state, 'up');
});

test('a missing Python, or a Python without marimo, is reported in one line', async () => {
  for (const [python, code, message] of [
    [
      '/nonexistent/python',
      'python_missing',
      /^Cannot start Python at \/nonexistent\/python: .*TROUPE_PYTHON/,
    ],
    ['/bin/false', 'kernel_host_failed', /^The kernel host ended/],
    ['/usr/bin/env', 'kernel_host_failed', /^The kernel host ended/],
  ] as const) {
    await assert.rejects(startTestHost({ python }), (error) => {
      assert.ok(error instanceof KernelHostError);
      assert.equal(error.code, code);
      assert.match(error.message, message);
      assert.equal(error.message.includes('\n'), false);
      return true;
    });
  }
});

test('an incompatible marimo is refused, and the error lists the missing names', async (t) => {
  const folder = mkdtempSync(join(tmpdir(), 'troupe-host-'));
  t.after(() => rmSync(folder, { recursive: true }));
  const hostScript = join(folder, 'zygote.py');
  const hello = {
    op: 'hello',
    layers: { namespaces: false, landlock: 0, seccomp: false, uid: null },
    marimo: '9.9.9',
    marimo_dir: '/nowhere/marimo',
    python: '3.11.0',
    supported: false,
    missing: ['Kernel.run'],
    confinement: 'none',
    ms: 1,
  };
  writeFileSync(
    hostScript,
    `import json, sys\nprint(${JSON.stringify(JSON.stringify(hello))}, flush=True)\nsys.stdin.read()\n`,
  );
  writeFileSync(join(folder, 'user_config.json'), '{}');
  await assert.rejects(startTestHost({ hostScript }), {
    code: 'marimo_unsupported',
    message: `marimo 9.9.9 in ${PYTHON} is not one that this server can drive: it lacks Kernel.run. Install the pinned version.`,
  });
  writeFileSync(hostScript, 'import marimo_that_is_not_there');
  await assert.rejects(startTestHost({ hostScript }), /exit code 1\): ModuleNotFoundError/);
});

test('a Python without marimo is refused with an error that names marimo', async (t) => {
  const folder = mkdtempSync(join(tmpdir(), 'troupe-python-'));
  t.after(() => rmSync(folder, { recursive: true }));
  const python = join(folder, 'python');
  writeFileSync(python, `#!/bin/sh\nexec ${PYTHON} -S "$@"\n`, { mode: 0o755 });
  await assert.rejects(startTestHost({ python }), { code: 'marimo_unsupported' });
});

test('a run directory whose path is too long for sockets works', async (t) => {
  const folder = mkdtempSync(join(tmpdir(), 'troupe-long-'));
  t.after(() => rmSync(folder, { recursive: true }));
  const runDir = join(folder, 'x'.repeat(120));
  mkdirSync(runDir, { mode: 0o700 });
  await using host = await startTestHost({ runDir });
  await openKernel(host, { a: '1' });
});

test('when full confinement is required and missing, the host does not start', async () => {
  const hello = await startTestHost({ confinement: 'require' }).then(
    async (host) => {
      await host[Symbol.asyncDispose]();
      return host.hello.confinement;
    },
    (error: unknown) => error,
  );
  if (hello instanceof KernelHostError) assert.equal(hello.code, 'confinement_unavailable');
  else assert.match(String(hello), /^full/);
});

test('when the process that forks kernels is killed, every kernel is reported and the next one starts', async () => {
  await using host = await startTestHost();
  const kernels = [await openKernel(host, { a: '1' }), await openKernel(host, { a: 'while True: pass' })];
  kernels[1]!.run(['a']).catch(() => {});
  const pids = await Promise.all(kernels.map(async ({ ready }) => (await ready).pid));
  process.kill(parentOf(pids[0]!), 'SIGKILL');
  const exits = await Promise.all(kernels.map(({ exited }) => exited));
  assert.deepEqual(
    exits.map(({ cause }) => cause),
    ['kernel_host_lost', 'kernel_host_lost'],
  );
  assert.equal(host.host.state, 'restarting');
  const next = await openKernel(host, { a: 'x = 1' });
  assert.equal((await next.run(['a'])).statuses.a, 'success');
  assert.equal(host.host.state, 'up');
  assert.deepEqual(
    kernels.map(({ exits: all }) => all.length),
    [1, 1],
  );
  await eventually('the lost kernels are gone', () => !pids.some(isAlive));
});

test('a kernel whose host ends while its socket is opened gets the next host', async () => {
  let zygote: Zygote | undefined;
  const startZygote: StartZygote = async (options) => {
    const started = await ZygoteProcess.start(options);
    zygote = started.zygote;
    return started;
  };
  await using host = await startTestHost({ startZygote });
  const newSocketPath = host.host.newSocketPath.bind(host.host);
  host.host.newSocketPath = () => {
    zygote?.kill();
    host.host.newSocketPath = newSocketPath;
    return newSocketPath();
  };
  const kernel = await openKernel(host, { a: 'x = 1' });
  assert.equal((await kernel.run(['a'])).statuses.a, 'success');
});

test('a stopped host counts as silent within seconds, and counts as alive again when it continues', async () => {
  await using host = await startTestHost();
  const kernel = await openKernel(host, { a: 'x = 1' });
  const zygote = parentOf((await kernel.ready).pid);
  process.kill(zygote, 'SIGSTOP');
  await eventually('the silence is noticed', () => host.host.state === 'silent');
  const next = new TestKernel(host, { a: 'x = 1' });
  process.kill(zygote, 'SIGCONT');
  await next.ready;
  assert.equal(host.host.state, 'up');
  assert.deepEqual(kernel.exits, []);
});

test('a host that stays stopped is killed with its kernels, and a waiting kernel gets the next host', async () => {
  await using host = await startTestHost();
  const lost = await openKernel(host, { a: 'x = 1' });
  const { pid } = await lost.ready;
  const zygote = parentOf(pid);
  const guardian = parentOf(zygote);
  process.kill(zygote, 'SIGSTOP');
  process.kill(guardian, 'SIGSTOP');
  await eventually('the silence is noticed', () => host.host.state === 'silent');
  const next = await openKernel(host, { a: 'x = 1' });
  assert.equal((await lost.exited).cause, 'kernel_host_lost');
  assert.equal((await next.run(['a'])).statuses.a, 'success');
  await eventually('what was stopped is gone', () => ![pid, zygote, guardian].some(isAlive));
});

test('disposing of a stopped host ends the process of the host', async () => {
  const host = await startTestHost();
  const { pid } = await (await openKernel(host, { a: 'x = 1' })).ready;
  const zygote = parentOf(pid);
  process.kill(zygote, 'SIGSTOP');
  await host[Symbol.asyncDispose]();
  await eventually('kernel and host are gone', () => !isAlive(pid) && !isAlive(zygote));
});

test('a host that fails to come back is started again, and a kernel waits for it', async (t) => {
  const folder = mkdtempSync(join(tmpdir(), 'troupe-host-'));
  t.after(() => rmSync(folder, { recursive: true }));
  const real = findHostScript();
  const hostScript = join(folder, 'flaky.py');
  copyFileSync(join(dirname(real), 'user_config.json'), join(folder, 'user_config.json'));
  writeFileSync(
    hostScript,
    `import os, runpy, sys
with open(${JSON.stringify(join(folder, 'starts'))}, "a+") as starts:
    starts.write("x")
    starts.seek(0)
    count = len(starts.read())
if count in (2, 3):
    sys.exit(1)
sys.path.insert(0, ${JSON.stringify(dirname(real))})
runpy.run_path(${JSON.stringify(real)}, run_name="__main__")
`,
  );
  const lines: string[] = [];
  const note = (_: object, message: string) => {
    if (message.includes('the kernel host')) lines.push(message);
  };
  await using host = await startTestHost({ hostScript, log: { info: note, warn: () => {}, error: note } });
  const { pid } = await (await openKernel(host, { a: '1' })).ready;
  process.kill(parentOf(pid), 'SIGKILL');
  await eventually('the loss is noticed', () => host.host.state === 'restarting');
  await openKernel(host, { a: '1' });
  assert.deepEqual(lines, [
    'the kernel host has ended and is started again',
    'the kernel host did not start again',
    'the kernel host did not start again',
    'the kernel host is back',
  ]);
});

test('a kernel that gets no host in time is reported as not started', async () => {
  await using host = await startTestHost({ launchTimeoutMs: 1 });
  const { cause, message } = await new TestKernel(host, { a: '1' }).exited;
  assert.deepEqual([cause, message], ['kernel_start_failed', 'The kernel did not start in time.']);
});

test('disposing of a host ends every process and refuses new kernels', async () => {
  const host = await startTestHost();
  const kernel = await openKernel(host, { a: 'while True: pass' });
  const { pid } = await kernel.ready;
  const zygote = parentOf(pid);
  kernel.run(['a']).catch(() => {});
  await host[Symbol.asyncDispose]();
  await eventually('kernel and host are gone', () => !isAlive(pid) && !isAlive(zygote));
  assert.equal((await kernel.exited).cause, 'kernel_killed');
  assert.equal(host.host.state, 'down');
  assert.equal((await new TestKernel(host, { a: '1' }).exited).cause, 'kernel_start_failed');
});

test('a server that is killed leaves no kernel running', async (t) => {
  const server = spawn(process.execPath, [join(import.meta.dirname, 'doomed-server.js')], {
    stdio: ['ignore', 'pipe', 'inherit'],
    env: { ...process.env, TROUPE_PYTHON: PYTHON },
  });
  const [line] = await once(createInterface({ input: server.stdout }), 'line');
  const { pids, folder }: { pids: number[]; folder: string } = JSON.parse(String(line));
  t.after(() => rmSync(folder, { recursive: true }));
  assert.deepEqual(
    pids.map(isAlive),
    pids.map(() => true),
  );
  server.kill('SIGKILL');
  await once(server, 'exit');
  await eventually('no process of the server is left', () => !pids.some(isAlive));
});

test('forty kernels open at once, each with a socket that is removed afterwards', async () => {
  await using host = await startTestHost();
  const kernels = Array.from({ length: 40 }, () => new TestKernel(host, { a: 'x = 1' }));
  const ready = await Promise.all(kernels.map((kernel) => kernel.ready));
  assert.equal(new Set(ready.map(({ pid }) => pid)).size, 40);
  assert.deepEqual(readdirSync(host.runDir), []);
});

test('a host that shares another host forks its kernels there and ends only these kernels', async () => {
  await using owner = await startTestHost();
  const sharing = await startTestHost({ startZygote: owner.host.share });
  const [ofOwner, ofSharing] = [await openKernel(owner, { a: '1' }), await openKernel(sharing, { a: '1' })];
  assert.equal(parentOf(parentOf(ofSharing.kernel.pid!)), parentOf(parentOf(ofOwner.kernel.pid!)));
  assert.deepEqual([owner.host.kernelCount, sharing.host.kernelCount], [1, 1]);
  const pid = ofSharing.kernel.pid!;
  await sharing[Symbol.asyncDispose]();
  await ofSharing.exited;
  assert.equal(isAlive(pid), false);
  assert.equal(owner.host.state, 'up');
  assert.equal((await ofOwner.run({ a: '2' })).done.cells.size, 1);
});

test('kernels of a host that shares another host are lost when the other host ends', async () => {
  const owner = await startTestHost();
  await using sharing = await startTestHost({ startZygote: owner.host.share });
  const kernel = await openKernel(sharing, { a: '1' });
  await owner[Symbol.asyncDispose]();
  assert.equal((await kernel.exited).cause, 'kernel_host_lost');
});
