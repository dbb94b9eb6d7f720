/**
 * Asks one question of a child of the kernel host that plans, installs or builds packages
 * (src/confined/python/children/installer.py).
 */

import { dirname } from 'node:path';
import { endOfText } from '#src/base/text/cut-text.ts';
import type { ChildEnd, ChildStarter } from '#src/confined/processes/confined-child.ts';
import { encodeFrame } from '#src/confined/processes/frame-decoder.ts';
import { asRecord, asText, isRecord } from '#src/confined/processes/json-shape.ts';
import { bareConfinement } from '#src/confined/processes/launch-order.ts';
import { PackageFailure } from './package-failure.ts';
import { abandoned, type Progress } from './shared-installation.ts';

/** The paths and ports that a child reaches in addition to the system and Python. */
export type InstallerReach =
  /** The folder of an installation with the cache next to it, and the proxy to the index. No code of a package runs. */
  | { readonly kind: 'index'; readonly folder: string; readonly port: number }
  /** The folder of one build. Code of a package runs. */
  | { readonly kind: 'build'; readonly work: string; readonly environment?: string };

export interface InstallerTask {
  readonly timeoutMs: number;
  readonly reach?: InstallerReach;
  readonly progress?: Progress;
  /** Kills the child when it aborts. If its reason is a `PackageFailure`, the question rejects with that. */
  readonly signal?: AbortSignal | undefined;
}

/** The members of an answer. */
export type InstallerAnswer = Readonly<Record<string, unknown>>;

const QUESTION = 1;
/** uv has some threads for each processor. */
const MAX_PROCESSES = 512;
/**
 * Resolving hundreds of packages takes a quarter of this memory. A limit is needed, because pages of an index and
 * metadata in an archive may have any size.
 */
const MEMORY_BYTES = 2 * 2 ** 30;

/**
 * Resolves with the answer of the child, once the child has ended or asks for nothing more. Rejects
 * with a `PackageFailure`.
 */
export function askInstaller(
  host: ChildStarter,
  question: Readonly<Record<string, unknown>>,
  { timeoutMs, reach, progress = () => {}, signal }: InstallerTask,
): Promise<InstallerAnswer> {
  return new Promise((resolve, reject) => {
    const end = (act: () => void) => {
      clearTimeout(timeout);
      signal?.removeEventListener('abort', abandon);
      child[Symbol.dispose]();
      act();
    };
    // The answer is used only at the end of the child, so that nothing writes to the folder any
    // more.
    let cutOff: PackageFailure | undefined;
    const cut = (failure: PackageFailure) => {
      cutOff = failure;
      child.kill();
    };
    const abandon = () => cut(signal?.reason instanceof PackageFailure ? signal.reason : abandoned());
    const isBuild = reach?.kind === 'build';
    const tooLong = () =>
      cut(new PackageFailure(isBuild ? BUILD_TOO_LONG : 'Installing the packages took too long.'));
    const timeout = setTimeout(tooLong, timeoutMs);
    const child = host.startChild(
      (confinement) => {
        const bare = bareConfinement(confinement, MAX_PROCESSES);
        const order = { op: 'install', memory: MEMORY_BYTES };
        if (bare === null || reach === undefined) return { order: { ...order, confine: bare }, launch: {} };
        if (reach.kind === 'build') {
          const { work, environment } = reach;
          const read = environment === undefined ? [] : [environment];
          // The code of a build may not signal this process, just as a kernel may not.
          const confine = { ...bare, shield: [process.pid] };
          return { order: { ...order, confine }, launch: { reach: { work, read } } };
        }
        return {
          // The child does not run as the user of kernels, because nothing that is installed runs
          // here, and the folder must belong to the server.
          order: { ...order, confine: { ...bare, network: 'open', uid: null } },
          // There is one folder for both, because links cannot lead from one mount into another.
          launch: { reach: { write: [dirname(reach.folder)], tcp_ports: [reach.port] } },
        };
      },
      {
        received: (values) => {
          for (const value of values) {
            const message = asRecord(value, 'the message');
            if (message.op === 'install-ready') child.sender.send([encodeFrame(QUESTION, question)]);
            else if (message.op === 'install-progress') progress(asText(message.text, 'text'));
            else if (message.op !== 'install-done') continue;
            else if (message.ok === true) end(() => resolve(message));
            else end(() => reject(new PackageFailure(asText(message.error, 'error'))));
          }
        },
        ended: (childEnd) => end(() => reject(cutOff ?? failureOf(childEnd, isBuild))),
      },
    );
    if (signal?.aborted) abandon();
    else signal?.addEventListener('abort', abandon);
  });
}

const BUILD_TOO_LONG =
  'Building a package from its sources took too long (TROUPE_PACKAGES_BUILD_TIMEOUT_S). Ask for a version that has wheels.';

function failureOf(end: ChildEnd, isBuild: boolean): PackageFailure {
  if (end.kind === 'ended' && end.process?.outOfMemory === true)
    return new PackageFailure(
      isBuild
        ? 'Building a package from its sources needs more memory than a build may use. Ask for a version that has wheels.'
        : 'Installing the packages needs more memory than the installer may use. Ask for fewer packages.',
    );
  return new PackageFailure(describeEnd(end), true);
}

function describeEnd(end: ChildEnd): string {
  if (end.kind === 'broken' || end.kind === 'refused' || end.kind === 'unavailable')
    return `The installer failed: ${end.reason}.`;
  const words = end.kind === 'ended' && isRecord(end.process) ? String(end.process.words ?? '') : '';
  return `The installer ended without an answer${words === '' ? '' : `: ${endOfText(words, 500)}`}.`;
}
