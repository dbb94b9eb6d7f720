import type { KernelMetrics } from '../kernel/kernel-process.ts';
import type { KernelLimits } from '../limits.ts';
import type { ConfinementChecks } from './kept-checks.ts';
import type { ProcessorShares } from './processor-shares.ts';
import type { KernelLog, StartZygote } from './zygote-process.ts';

/** The options that can differ between the hosts of one server. */
export type HostParts = Pick<KernelHostOptions, 'startZygote' | 'proves' | 'onProof'>;

/** Options of the kernel host. */
export interface KernelHostOptions {
  /** The metrics of kernels' starts and ends; absent when nothing is counted. */
  readonly metrics?: KernelMetrics;
  readonly python: string;
  /** Default: src/confined/python/zygote.py of this package. */
  readonly hostScript?: string;
  /** An existing directory of mode 0700 for sockets, which is hidden from kernels. */
  readonly runDir: string;
  readonly preload: boolean;
  readonly log: KernelLog;
  /** An absent limit means unlimited. */
  readonly limits?: Partial<KernelLimits>;
  /** `require` refuses to start below full confinement. Default `auto`: as much as this machine allows. */
  readonly confinement?: 'auto' | 'require' | 'off';
  /**
   * Directories and files that are hidden from kernels. Only a kernel's own working directory inside them is
   * visible to the kernel.
   */
  readonly hiddenPaths: readonly string[];
  /** Paths that kernels may read in addition to the system and the Python environment. */
  readonly readPaths?: readonly string[];
  /** Paths that a kernel may write in addition to its working directory. */
  readonly writePaths?: readonly string[];
  /** Default `host`. */
  readonly kernelNetwork?: 'host' | 'none';
  /** The user id of kernels, for a server that runs as root. */
  readonly kernelUid?: number;
  /**
   * The server's environment variables; environment.ts selects those that children get. Default: the variables of this
   * process.
   */
  readonly environment?: Readonly<Record<string, string | undefined>>;
  readonly launchTimeoutMs?: number;
  /** Whether each run of the host checks that kernels start (kernel-proof.ts). Default: no. */
  readonly proves?: boolean;
  /** Called with each outcome of that check: null, or the reason why no kernel starts. */
  readonly onProof?: (problem: string | null) => void;
  /** Called with the results of each check, also when the host refuses to start for lack of confinement. */
  readonly onChecked?: (checks: Omit<ConfinementChecks, 'checkedAt'>) => void;
  /** Starts the zygote. Default: as a process of this server. */
  readonly startZygote?: StartZygote;
  /** Divides the processors among workspaces, for all hosts that share it. Default: all kernels are equal. */
  readonly shares?: ProcessorShares;
}
