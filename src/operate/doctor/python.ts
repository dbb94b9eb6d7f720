import { existsSync, mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { Config } from '#src/base/config/config.ts';
import { systemFailure } from '#src/base/errors/operator-error.ts';
import { type ConfinementChecks, readChecks } from '#src/confined/processes/host/kept-checks.ts';
import { KernelHost } from '#src/confined/processes/host/kernel-host.ts';
import { DataDirectory } from '#storage/disk/data-directory.ts';
import { type Finding, fine, messageOf, problem, warning } from './finding.ts';

const UPGRADE =
  'Run troupe setup, or set TROUPE_PYTHON to an interpreter with the marimo version of this release.';

/**
 * Starts the kernel host as the server would, and returns findings about Python, marimo and confinement. If a server
 * is running, its findings about confinement replace those of this command: a unit or a container may allow the
 * server less.
 */
export async function checkPython(config: Config): Promise<Finding[]> {
  const { dataDir } = config;
  const kept = existsSync(dataDir) ? readChecks(dataDir) : undefined;
  const running = kept !== undefined && (await DataDirectory.isClaimed(dataDir)) ? kept : undefined;
  let runDir: string;
  try {
    runDir = mkdtempSync(join(tmpdir(), 'troupe-doctor-'));
  } catch (error) {
    const { problem: detail } = systemFailure(`Temporary files cannot be made in ${tmpdir()}`, error);
    return [problem('Python', detail, 'Make that directory writable, or set TMPDIR to one that is.')];
  }
  const silent = { info: () => {}, warn: () => {}, error: () => {} };
  const { python, kernelConfinement: confinement, kernelNetwork, kernelUid } = config;
  let onProof: (problem: string | null) => void = () => {};
  const proof = new Promise<string | null>((resolve) => {
    onProof = resolve;
  });
  const host = new KernelHost({
    python,
    runDir,
    preload: false,
    log: silent,
    confinement,
    hiddenPaths: [],
    readPaths: config.kernelReadPaths,
    writePaths: config.kernelWritePaths,
    kernelNetwork,
    proves: running === undefined,
    onProof,
    ...(kernelUid === undefined ? {} : { kernelUid }),
  });
  try {
    const hello = await host.start();
    return [
      fine('Python', `${hello.python} (${python})`),
      hello.missing.length === 0
        ? fine('marimo', `${hello.marimo}, compatible`)
        : warning('marimo', `${hello.marimo} lacks the private names ${hello.missing.join(', ')}`, UPGRADE),
      ...(running === undefined
        ? [confinementFinding(hello.confinement, confinement), kernelsFinding(await proof)]
        : findingsOfServer(running, confinement)),
      ...(running === undefined ? lastStartFinding(kept) : []),
      await databasesFinding(host, runDir),
    ];
  } catch (error) {
    return [problem('Python', messageOf(error), UPGRADE)];
  } finally {
    await host[Symbol.asyncDispose]();
    rmSync(runDir, { recursive: true, force: true });
  }
}

/** Checks whether database files can be used, by opening one that does not exist. */
async function databasesFinding(host: KernelHost, filesDirectory: string): Promise<Finding> {
  const lacking: unknown[] = [];
  for (const kind of ['sqlite', 'duckdb'] as const) {
    using engine = host.startEngine({ kind, filesDirectory, path: 'none', mode: 'probe' });
    const answer = await engine.ask({ op: 'open' });
    const { category, detail }: Readonly<Record<string, unknown>> = { ...Object(answer) };
    if (category !== 'file_missing') lacking.push(category === 'package_missing' ? detail : kind);
  }
  return lacking.length === 0
    ? fine('databases', 'SQLite and DuckDB files can be used')
    : warning('databases', `datasources that are files lack ${lacking.join(', ')}`, UPGRADE);
}

/** Returns the findings of the running server. */
function findingsOfServer(
  { checkedAt, confinement, problem: why }: ConfinementChecks,
  setting: Config['kernelConfinement'],
): Finding[] {
  const source = ` (found by the running server at ${checkedAt})`;
  return [confinementFinding(confinement, setting), kernelsFinding(why)].map((finding) => ({
    ...finding,
    detail: `${finding.detail}${source}`,
  }));
}

/** Returns a finding when the latest server could not start a kernel. The check of this command may miss that. */
function lastStartFinding(kept: ConfinementChecks | undefined): Finding[] {
  if (kept === undefined || kept.problem === null) return [];
  const advice =
    'If this command finds full confinement and a kernel, the unit or container of the service allows less: compare it with deploy/troupe.service.';
  return [
    warning(
      'last start',
      `the server of ${kept.checkedAt} could start no kernel: ${kept.problem} (${kept.confinement})`,
      advice,
    ),
  ];
}

function kernelsFinding(why: string | null): Finding {
  if (why === null) return fine('kernels', 'a kernel starts, confined so');
  return problem('kernels', why, 'No notebook can be opened. Solve the problem that the message names.');
}

function confinementFinding(line: string, setting: Config['kernelConfinement']): Finding {
  if (setting === 'off') {
    return warning(
      'confinement',
      `off; ${line}`,
      'Unset TROUPE_KERNEL_CONFINEMENT unless you trust the code of all notebooks.',
    );
  }
  if (line.startsWith('full')) return fine('confinement', line);
  return warning(
    'confinement',
    line,
    'This is acceptable if you trust the code of all notebooks. Otherwise provide the missing layers.',
  );
}
