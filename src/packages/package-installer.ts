/**
 * Asks children of the kernel host (src/confined/python/children/installer.py) which packages a notebook lacks, and to install them. A
 * child that plans is confined like a conversion. One that installs also writes the folder that it fills, and connects to
 * the proxy of this server and to nothing else.
 */
import { existsSync, realpathSync } from 'node:fs';
import { dirname, join } from 'node:path';
import type { ChildEnd, ChildStarter } from '#src/confined/confined-child.ts';
import { encodeFrame } from '#src/confined/frame-decoder.ts';
import { asList, asRecord, asText, isRecord } from '#src/confined/json-shape.ts';
import { bareConfinement } from '#src/confined/launch-order.ts';
import type { IndexProxy } from './index-proxy.ts';
import { PackageFailure } from './package-failure.ts';
import { abandoned, type Progress } from './shared-installation.ts';

/** The requirements of a notebook. */
export interface PackageWishes {
  /** The header of its file, which may have script metadata (PEP 723). */
  readonly script: string;
  /** The requirements of its workspace; of two with one name the later one counts. */
  readonly workspace: readonly string[];
}

/** The packages that a notebook needs in addition. */
export interface PackagePlan {
  /** The requirements in a normal form; empty when nothing is missing. */
  readonly requirements: readonly string[];
  /** Names exactly these requirements on exactly this Python and index. */
  readonly key: string;
  /** Differences from the requirements of the notebook, in sentences. */
  readonly notes: readonly string[];
  /** The requirements of the workspace by normal name. */
  readonly workspace: readonly (readonly [name: string, requirement: string])[];
}

/** The installed packages. */
export interface Installation {
  readonly packages: readonly (readonly [name: string, version: string])[];
  /** Whether some of them replace versions of the server's own environment. */
  readonly replaces: boolean;
}

export interface PackageInstallerOptions {
  readonly host: ChildStarter;
  /** The interpreter of kernels. */
  readonly python: string;
  /** The address of the index (PEP 503). */
  readonly index: string;
  /** Opens the way to the index for one installation. */
  readonly openProxy: () => Promise<IndexProxy>;
}

const QUESTION = 1;
const PLAN_TIMEOUT_MS = 30_000;
const INSTALL_TIMEOUT_MS = 15 * 60_000;
/** uv has some threads for each processor. */
const MAX_PROCESSES = 512;
/** A resolution of hundreds of packages takes a quarter of it; pages of an index and metadata in an archive may have any size. */
const MEMORY_BYTES = 2 * 2 ** 30;
const SYSTEM_FOLDERS = ['/usr/local/bin', '/usr/bin'];

export class PackageInstaller {
  readonly #options: PackageInstallerOptions;

  constructor(options: PackageInstallerOptions) {
    this.#options = options;
  }

  /** Resolves with the packages that the notebook needs in addition. Rejects with a `PackageFailure`. */
  async plan({ script, workspace }: PackageWishes): Promise<PackagePlan> {
    const question = { step: 'plan', script, workspace, index: this.#options.index };
    const answer = await this.#ask(question, PLAN_TIMEOUT_MS);
    return {
      requirements: asList(answer.requirements, asText, 'requirements'),
      key: asText(answer.key, 'key'),
      notes: asList(answer.notes, asText, 'notes'),
      workspace: asList(answer.workspace, asPair, 'workspace'),
    };
  }

  /**
   * Installs into `folder/site`; the folder exists and is empty. Rejects with a `PackageFailure`, also when `signal` aborts; the
   * installer is killed then.
   */
  async install(
    requirements: readonly string[],
    folder: string,
    progress: Progress,
    signal: AbortSignal,
  ): Promise<Installation> {
    const { python, index, openProxy } = this.#options;
    const uv = [dirname(python), ...SYSTEM_FOLDERS].map((one) => join(one, 'uv')).find(existsSync);
    if (uv === undefined)
      throw new PackageFailure(
        'Packages cannot be installed, because uv is missing. Run `troupe setup`, or install uv next to the interpreter of kernels.',
      );
    await using proxy = await openProxy();
    // A link may lie where the child sees nothing.
    const question = { step: 'install', requirements, folder, uv: realpathSync(uv), index, proxy: proxy.url };
    try {
      const answer = await this.#ask(question, INSTALL_TIMEOUT_MS, progress, {
        folder,
        port: proxy.port,
        signal,
      });
      return {
        packages: asList(answer.packages, asPair, 'packages'),
        replaces: answer.replaces === true,
      };
    } catch (error) {
      throw proxy.refusal === undefined ? error : new PackageFailure(proxy.refusal);
    }
  }

  #ask(
    question: Readonly<Record<string, unknown>>,
    timeoutMs: number,
    progress: Progress = () => {},
    installation?: { readonly folder: string; readonly port: number; readonly signal: AbortSignal },
  ): Promise<Readonly<Record<string, unknown>>> {
    const signal = installation?.signal;
    return new Promise((resolve, reject) => {
      const end = (act: () => void) => {
        clearTimeout(timeout);
        signal?.removeEventListener('abort', abandon);
        child[Symbol.dispose]();
        act();
      };
      // The answer comes with the end of the child, so that nothing writes the folder any more.
      let cutOff: PackageFailure | undefined;
      const cut = (failure: PackageFailure) => {
        cutOff = failure;
        child.kill();
      };
      const abandon = () => cut(abandoned());
      const tooLong = () => cut(new PackageFailure('Installing the packages took too long.'));
      const timeout = setTimeout(tooLong, timeoutMs);
      const child = this.#options.host.startChild(
        (confinement) => {
          const bare = bareConfinement(confinement, MAX_PROCESSES);
          const order = { op: 'install', memory: MEMORY_BYTES };
          if (bare === null || installation === undefined)
            return { order: { ...order, confine: bare }, launch: {} };
          const { folder, port } = installation;
          return {
            // Not the user of kernels: nothing that is installed runs here, and the folder stays the server's.
            order: { ...order, confine: { ...bare, network: 'open', uid: null } },
            launch: { reach: { write: [folder], tcp_ports: [port] } },
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
          ended: (childEnd) => end(() => reject(cutOff ?? failureOf(childEnd))),
        },
      );
      if (signal?.aborted) abandon();
      else signal?.addEventListener('abort', abandon);
    });
  }
}

function asPair(value: unknown): [string, string] {
  const [first, second] = asList(value, asText, 'a pair');
  return [first ?? '', second ?? ''];
}

function failureOf(end: ChildEnd): PackageFailure {
  if (end.kind === 'ended' && end.process?.outOfMemory === true)
    return new PackageFailure(
      'Installing the packages takes more memory than there is for it. Ask for fewer packages.',
    );
  return new PackageFailure(describeEnd(end), true);
}

function describeEnd(end: ChildEnd): string {
  if (end.kind === 'broken' || end.kind === 'refused' || end.kind === 'unavailable')
    return `The installer failed: ${end.reason}.`;
  const words = end.kind === 'ended' && isRecord(end.process) ? String(end.process.words ?? '') : '';
  return `The installer ended without an answer${words === '' ? '' : `: ${words.slice(-500)}`}.`;
}
