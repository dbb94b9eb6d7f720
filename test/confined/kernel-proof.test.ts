// own kernel host: it looks at the start of the host
/** A server is ready once a kernel has started, and not before. */
import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { existsSync, mkdirSync, mkdtempSync, readdirSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { test } from 'node:test';
import { fileURLToPath } from 'node:url';
import type { Readiness } from '#src/contract/wire/health.ts';
import { eventually as within } from '#test/support/processes.ts';
import { SETTINGS } from '#test/support/server-fixture.ts';
import { PYTHON, startTestHost } from './kernel-fixture.ts';

const PATIENCE_MS = 60_000;
const eventually: typeof within = (what, fact) => within(what, fact, PATIENCE_MS);
const MAIN = fileURLToPath(new URL('../../server/main.js', import.meta.url));

test('the host proves that kernels start, and leaves no process', async () => {
  await using fixture = await startTestHost({ proves: true });
  const { host, runDir } = fixture;
  await host.proven();
  assert.equal(host.problem, null);
  assert.equal(host.kernelCount, 0);
  await eventually('an empty folder', () => readdirSync(runDir).length === 0);
});

test('a host whose kernels cannot start reports the reason', async () => {
  await using fixture = await startTestHost({ proves: true, limits: { openFiles: 4 } });
  const { host } = fixture;
  await eventually('a problem', () => /^The kernel did not start: /.test(host.problem ?? ''));
});

test('a host whose kernels lack a promised layer names that layer', async () => {
  const outcomes: (string | null)[] = [];
  const python = pythonWith(`
import ctypes
from ctypes import CDLL as Library
class Lenient(Library):
    def __getattr__(self, name):
        function = super().__getattr__(name)
        # libc confirms the filter of system calls, and has not set it
        skip = lambda option, *args: 0 if getattr(option, "value", 0) == 22 else function(option, *args)
        if name == "prctl": self.prctl = skip
        return skip if name == "prctl" else function
ctypes.CDLL = Lenient
`);
  await using fixture = await startTestHost({ proves: true, python, onProof: (one) => outcomes.push(one) });
  assert.equal(fixture.hello.layers.seccomp, true);
  await eventually('an outcome', () => outcomes.length > 0);
  assert.deepEqual(outcomes, ['A kernel has started without seccomp.']);
});

for (const workers of [1, 3]) {
  test(`a server of ${workers} workers is alive and not ready until a kernel starts`, async (t) => {
    const dataDir = mkdtempSync(join(tmpdir(), 'troupe-unproven-'));
    t.after(() => rmSync(dataDir, { recursive: true, force: true, maxRetries: 5 }));
    const flag = join(dataDir, 'no-kernels');
    writeFileSync(flag, '');
    const python = pythonWith(`
import os, socket
connect = socket.socket.connect
def refuse(self, address):
    if os.path.exists(${JSON.stringify(flag)}): raise PermissionError(1, "no kernels today")
    connect(self, address)
socket.socket.connect = refuse
`);
    const { PATH = '', HOME = '' } = process.env;
    const server = spawn(process.execPath, [MAIN], {
      cwd: dataDir,
      env: {
        PATH,
        HOME,
        ...SETTINGS,
        TROUPE_DATA_DIR: dataDir,
        TROUPE_WORKERS: String(workers),
        TROUPE_PYTHON: python,
      },
      stdio: ['ignore', 'pipe', 'pipe'],
    });
    t.after(async () => {
      const ended = once(server, 'close');
      server.kill('SIGKILL');
      await ended;
    });
    const said: string[] = [];
    createInterface({ input: server.stdout }).on('line', (line) => said.push(line));
    createInterface({ input: server.stderr }).on('line', (line) => said.push(line));
    const baseUrl = await eventually('the address', () => /listens on (http:\S+)/.exec(said.join('\n'))?.[1]);
    const readyz = async () => {
      const answer = await fetch(`${baseUrl}/readyz`);
      return { status: answer.status, ...((await answer.json()) as Readiness) };
    };

    await eventually('the reason', async () => /no kernels today/.test((await readyz()).reason ?? ''));
    assert.equal((await readyz()).status, 503);
    assert.equal((await fetch(`${baseUrl}/healthz`)).status, 200);
    assert.ok(!said.some((line) => /kernels are confined|"msg":"ready"/.test(line)), said.join('\n'));
    await eventually('the line of the log', () =>
      said.some((line) => /"msg":"no kernel can be started"/.test(line)),
    );

    rmSync(flag);
    await eventually('a server that is ready', async () => (await readyz()).ready);
    await eventually('the line', () => said.some((line) => line.includes('kernels are confined')));
  });
}

/** A program that runs Python after this code. */
function pythonWith(code: string): string {
  const folder = mkdtempSync(join(tmpdir(), 'troupe-rotten-'));
  test.after(() => rmSync(folder, { recursive: true, force: true }));
  const bin = join(folder, 'bin');
  if (!existsSync(bin)) mkdirSync(bin);
  writeFileSync(join(bin, 'sitecustomize.py'), code);
  const python = join(bin, 'python');
  writeFileSync(python, `#!/bin/sh\nPYTHONPATH='${bin}' exec '${PYTHON}' "$@"\n`, { mode: 0o755 });
  return python;
}
