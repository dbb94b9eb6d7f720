/**
 * Starts kernels with the packages of their notebooks: at once if the notebook needs no packages, otherwise when
 * these are installed. If a package replaces one that the kernel host has loaded, such as another version of pandas,
 * the kernel is forked from a second host. That host has loaded only marimo, and is started when it is first needed.
 */

import type { Log } from '#src/base/log/log.ts';
import type { Kernel, KernelLaunch, KernelSink } from '#src/confined/processes/kernel/kernel.ts';
import { PackageFailure } from './package-failure.ts';
import type { PackageRequest, PackageSet, PackageSets } from './package-sets.ts';
import { WaitingKernel } from './waiting-kernel.ts';

interface KernelStarter {
  startKernel(launch: KernelLaunch, sink: KernelSink): Kernel;
}

/** A kernel that is no longer needed once `signal` aborts. */
interface WantedKernel {
  readonly launch: KernelLaunch;
  readonly sink: KernelSink;
  readonly signal: AbortSignal;
}

export interface KernelsWithPackagesOptions {
  readonly host: KernelStarter;
  /** Resolves with a host that has only marimo loaded. */
  readonly plainHost: () => Promise<KernelStarter>;
  /** Undefined: no packages may be installed. */
  readonly sets: PackageSets | undefined;
  readonly log: Pick<Log, 'info'>;
}

export class KernelsWithPackages implements KernelStarter {
  readonly #options: KernelsWithPackagesOptions;

  constructor(options: KernelsWithPackagesOptions) {
    this.#options = options;
  }

  startKernel(launch: KernelLaunch, sink: KernelSink): Kernel {
    const { host, sets } = this.#options;
    const { script = '', requirements: workspace = [], workspaceId = '' } = launch;
    const asksForNone = workspace.length === 0 && !script.includes('# /// script');
    if (sets === undefined || asksForNone) return host.startKernel(launch, sink);
    return new WaitingKernel(launch.id, sink, (own, signal) =>
      this.#start({ launch, sink: own, signal }, sets, { script, workspace, workspaceId }),
    );
  }

  async #start(
    { launch, sink, signal }: WantedKernel,
    sets: PackageSets,
    request: PackageRequest,
  ): Promise<Kernel> {
    const { host, plainHost, log } = this.#options;
    const startedAt = performance.now();
    const tell = (text: string) => {
      log.info({ sessionId: launch.id }, text);
      sink.installing?.(text);
    };
    const note = (difference: string) => {
      log.info({ sessionId: launch.id }, difference);
      sink.noted?.(difference);
    };
    const set = await sets.obtain(request, tell, signal, note);
    sink.installing?.(null);
    if (set === null) return host.startKernel(launch, sink);
    try {
      const starter = set.replaces ? await plainHost() : host;
      const packagesMs = Math.round(performance.now() - startedAt);
      return starter.startKernel({ ...launch, packages: set.path }, releasing(set, sink, packagesMs));
    } catch (error) {
      set[Symbol.dispose]();
      throw error instanceof PackageFailure ? error : new PackageFailure(String(error));
    }
  }
}

/** Releases the set when the kernel has ended, and adds the time that getting it took. */
function releasing(set: PackageSet, sink: KernelSink, packagesMs: number): KernelSink {
  const prepare = sink.prepare?.bind(sink);
  return {
    ...(prepare === undefined ? {} : { prepare }),
    ready: (info) => sink.ready({ ...info, phases: { ...info.phases, packagesMs } }),
    messages: (batch) => sink.messages(batch),
    exited: (exit) => {
      set[Symbol.dispose]();
      sink.exited(exit);
    },
  };
}
