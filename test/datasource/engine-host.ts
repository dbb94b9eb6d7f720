/** The kernel host of the test files that use embedded databases: it starts with the first one and ends after the tests. */
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after } from 'node:test';
import { fileURLToPath } from 'node:url';
import { KernelHost } from '#src/confined/processes/host/kernel-host.ts';
import type { StartEngine } from '#src/datasource/embedded/engine-port.ts';
import { LANE } from '#test/runner/lane-state.ts';

const PYTHON =
  process.env.TROUPE_PYTHON || fileURLToPath(new URL('../../../.venv/bin/python', import.meta.url));

const hosts = new Map<'auto' | 'off', KernelHost>();
let runDir: string | undefined;

const end = async () => {
  for (const host of hosts.values()) await host[Symbol.asyncDispose]();
  if (runDir !== undefined) rmSync(runDir, { recursive: true, force: true });
};
// Registered here and not in a function, because a hook that is registered while a test runs belongs to that test. In a lane, several
// files use these hosts.
if (LANE === undefined) after(end);
else LANE.atEnd(end);

/** Starts an engine that is confined as far as this machine allows. */
export const startEngine: StartEngine = (launch) => hostWith('auto').startEngine(launch);

/** Starts an engine that is not confined: only the rules of the databases themselves hold. */
export const startUnconfined: StartEngine = (launch) => hostWith('off').startEngine(launch);

function hostWith(confinement: 'auto' | 'off'): KernelHost {
  const known = hosts.get(confinement);
  if (known !== undefined) return known;
  runDir ??= mkdtempSync(join(tmpdir(), 'troupe-engines-'));
  const host = new KernelHost({
    python: PYTHON,
    runDir,
    preload: false,
    log: { info: () => {}, warn: () => {}, error: () => {} },
    hiddenPaths: [runDir],
    confinement,
  });
  hosts.set(confinement, host);
  host.start().catch(() => {}); // an engine that waits for the host reports that
  return host;
}
