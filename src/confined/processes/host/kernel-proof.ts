/**
 * The check that kernels start. It starts a kernel like those of notebooks, and the kernel checks
 * its confinement from the inside. Without this the host knows only that namespaces and layers
 * exist, not that a kernel gets them. A server whose kernels all fail would then look healthy until
 * somebody opens a notebook.
 */

import { mkdirSync, mkdtempSync, readlinkSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { endOfText } from '#src/base/text/cut-text.ts';
import type { Kernel, KernelLaunch, KernelSink } from '../kernel/kernel.ts';
import type { KernelMessage } from '../kernel/messages.ts';
import type { ConfinementLayers } from './zygote-process.ts';

export interface ProofOptions {
  /** The confinement layers that kernels should have; null: none. */
  readonly layers: ConfinementLayers | null;
  /** An unused path that is hidden from kernels like the paths of the server. */
  readonly folder: string;
  /** Whether kernels may read the whole disk, according to the settings. */
  readonly readsAll: boolean;
  readonly startKernel: (launch: KernelLaunch, sink: KernelSink) => Kernel;
}

/** The findings of the kernel, as `FIND` prints them. */
interface Findings {
  readonly pidNamespace: string;
  readonly uid: number;
  readonly seccomp: boolean;
  readonly privileged: boolean;
  readonly readsSecret: boolean;
  readonly readsRoot: boolean;
}

/** The time for the check, in addition to the time that every kernel has for its start. */
const PATIENCE_MS = 60_000;
const MARK = 'TROUPE-PROOF';
const FIND = `
import json as _json, os as _os
def _reads(path):
    try: _os.close(_os.open(path, _os.O_RDONLY))
    except OSError: return False
    return True
with open("/proc/self/status") as _file: _status = dict(_line.split(":", 1) for _line in _file)
print("${MARK}" + _json.dumps({
    "pidNamespace": _os.readlink("/proc/self/ns/pid"),
    "uid": _os.getuid(),
    "seccomp": _status.get("Seccomp", "").strip() == "2",
    "privileged": int(_status["CapEff"], 16) != 0 or _status["NoNewPrivs"].strip() != "1",
    "readsSecret": _reads("../secret"),
    "readsRoot": _reads("/"),
}))
`;

/** Starts a kernel and ends it. Returns null, or why kernels do not start or are not confined as they should be. */
export async function proveKernels(options: ProofOptions): Promise<string | null> {
  let folder: string;
  try {
    folder = makeFolder(options.folder);
  } catch (error) {
    return `There is no folder for a kernel: ${error instanceof Error ? error.message : String(error)}.`;
  }
  try {
    const found = await askKernel(options, join(folder, 'work'));
    return typeof found === 'string' ? found : compare(found, options);
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
}

/** Makes the working folder of the kernel, and next to it a file that the kernel must not see. */
function makeFolder(path: string): string {
  let folder = path;
  try {
    mkdirSync(folder, { mode: 0o711 });
  } catch {
    folder = mkdtempSync(join(tmpdir(), 'troupe-proof-')); // the disk of the data is full, but kernels can run without this folder
  }
  mkdirSync(join(folder, 'work'), { mode: 0o700 });
  writeFileSync(join(folder, 'secret'), '', { mode: 0o600 });
  return folder;
}

/** Resolves once the kernel has ended, with its findings or with the reason for their absence. */
function askKernel({ startKernel }: ProofOptions, cwd: string): Promise<Findings | string> {
  return new Promise((resolve) => {
    let printed = '';
    let found: Findings | undefined;
    let seq: number | undefined;
    const patience = setTimeout(() => kernel.kill(), PATIENCE_MS);
    const sink: KernelSink = {
      ready() {
        seq = kernel.scratchpad({ code: FIND, cells: [], runId: 'proof' });
      },
      messages(batch) {
        printed += batch.flatMap(consoleOf).join('');
        if (!batch.some((message) => message.op === 'bridge-done' && message.seq === seq)) return;
        found = parse(printed);
        kernel.kill();
      },
      exited({ message }) {
        clearTimeout(patience);
        resolve(found ?? (printed === '' ? message : `A kernel did not work: ${endOfText(printed, 1000)}`));
      },
    };
    const launch = { id: 'proof', cwd, env: {}, cells: [], appOptions: {}, isProof: true };
    const kernel = startKernel(launch, sink);
  });
}

function consoleOf(message: KernelMessage): string[] {
  if (message.op !== 'cell-op') return [];
  return (message.console ?? []).flatMap(({ data }) => (typeof data === 'string' ? [data] : []));
}

function parse(printed: string): Findings | undefined {
  const line = printed.split('\n').find((one) => one.startsWith(MARK));
  return line === undefined ? undefined : (JSON.parse(line.slice(MARK.length)) as Findings);
}

/**
 * Returns the part of the confinement that the kernel did not find; null when the kernel found the whole
 * confinement.
 */
function compare(found: Findings, { layers, readsAll }: ProofOptions): string | null {
  if (layers === null) return null;
  const { namespaces, landlock, seccomp, uid } = layers;
  const lacking = [
    ...(namespaces && found.pidNamespace === readlinkSync('/proc/self/ns/pid') ? ['namespaces'] : []),
    ...(landlock > 0 && !readsAll && found.readsRoot ? ['Landlock'] : []),
    ...(seccomp && !found.seccomp ? ['seccomp'] : []),
    ...(uid !== null && found.uid !== uid ? [`the user id ${uid}`] : []),
    ...(found.privileged ? ['the loss of privileges'] : []),
    ...((namespaces || landlock > 0) && found.readsSecret ? ['a hidden data directory'] : []),
  ];
  return lacking.length === 0 ? null : `A kernel has started without ${lacking.join(', ')}.`;
}
