import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { Config } from '#src/config.ts';
import { KernelHost } from '#src/kernel/kernel-host.ts';
import { type Finding, messageOf, ok, problem, warning } from './finding.ts';

const UPGRADE = 'Run npm run setup, or set TROUPE_PYTHON to an interpreter with the pinned marimo.';

/** Starts what starts kernels, as the server would, and reports what it says of itself. */
export async function checkPython(config: Config): Promise<Finding[]> {
  const runDir = mkdtempSync(join(tmpdir(), 'troupe-doctor-'));
  const silent = { info: () => {}, warn: () => {}, error: () => {} };
  const { python, kernelConfinement: confinement, kernelNetwork, kernelUid } = config;
  const host = new KernelHost({
    python,
    runDir,
    preload: false,
    log: silent,
    confinement,
    hiddenPaths: [],
    kernelNetwork,
    ...(kernelUid === undefined ? {} : { kernelUid }),
  });
  try {
    const hello = await host.start();
    return [
      ok('Python', `${hello.python} (${python})`),
      hello.missing.length === 0
        ? ok('marimo', `${hello.marimo}, every private name in its place`)
        : warning('marimo', `${hello.marimo} lacks ${hello.missing.join(', ')}`, UPGRADE),
      confinementFinding(hello.confinement, confinement),
    ];
  } catch (error) {
    return [problem('Python', messageOf(error), UPGRADE)];
  } finally {
    await host[Symbol.asyncDispose]();
    rmSync(runDir, { recursive: true, force: true });
  }
}

function confinementFinding(line: string, setting: Config['kernelConfinement']): Finding {
  if (setting === 'off') {
    return warning(
      'confinement',
      `off; ${line}`,
      'Unset TROUPE_KERNEL_CONFINEMENT unless you trust all notebooks.',
    );
  }
  if (line.startsWith('full')) return ok('confinement', line);
  return warning(
    'confinement',
    line,
    'Fine for notebooks you trust. Otherwise put right what is not covered.',
  );
}
