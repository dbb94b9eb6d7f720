/** The kernel host that starts embedded databases for a file of tests: started with the first one, ended after the last. */
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after } from 'node:test';
import { fileURLToPath } from 'node:url';
import type { StartEngine } from '#src/datasource/embedded/engine-port.ts';
import { KernelHost } from '#src/kernel/kernel-host.ts';

const PYTHON =
  process.env.TROUPE_PYTHON || fileURLToPath(new URL('../../../.venv/bin/python', import.meta.url));

let host: KernelHost | undefined;
let runDir: string | undefined;

// Here and not in a function: a hook that is made while a test runs belongs to that test.
after(async () => {
  await host?.[Symbol.asyncDispose]();
  if (runDir !== undefined) rmSync(runDir, { recursive: true, force: true });
});

export const startEngine: StartEngine = (launch) => (host ?? boot()).startEngine(launch);

function boot(): KernelHost {
  runDir = mkdtempSync(join(tmpdir(), 'troupe-engines-'));
  const silence = { info: () => {}, warn: () => {}, error: () => {} };
  host = new KernelHost({ python: PYTHON, runDir, preload: false, log: silence, hiddenPaths: [runDir] });
  host.start().catch(() => {}); // an engine that waits for it says so
  return host;
}
