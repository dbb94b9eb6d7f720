import { join } from 'node:path';
import type { KernelLaunch } from './kernel/kernel.ts';
import { toMarimoConfig } from './kernel/kernel-commands.ts';
import { type KernelLimits, rlimitsOf } from './limits.ts';

/** A request to start one child of the kernel host. */
export interface ChildRequest {
  /**
   * The members of the order, as `python/forking/orders.py` declares them, without `id` and `connection`. An
   * order contains no data of a workspace.
   */
  readonly order: Readonly<Record<string, unknown>>;
  /** The task of the process, sent to it over its own connection. */
  readonly launch: Readonly<Record<string, unknown>>;
  /** The workspace of a kernel: kernels of one workspace are kept together where there are several machines. */
  readonly workspaceId?: string;
}

/** How kernels are isolated from the server and from each other. */
export interface Confinement {
  /** Directories and files of the server. */
  readonly hiddenPaths: readonly string[];
  /** Paths that may be read in addition to the system and the Python environment. */
  readonly readPaths: readonly string[];
  /** Paths that may be written in addition to the working directory. */
  readonly writePaths: readonly string[];
  /** `none`: only a loopback of the kernel's own. */
  readonly network: 'host' | 'none';
  /** The user that kernels run as; only a server that is root can have one. */
  readonly uid: number | null;
}

/** The settings that every kernel of one host shares. */
export interface LaunchPolicy {
  readonly limits: KernelLimits;
  /** Null: kernels are not confined. */
  readonly confinement: Confinement | null;
  /** marimo's user configuration, as the kernel host ships it. */
  readonly userConfig: unknown;
}

const BARE_PROCESSES = 64;

/** Options of marimo's App that its kernel accepts. A notebook may have others, of any shape, which the kernel would refuse. */
const APP_OPTIONS: Readonly<Record<string, (value: unknown) => boolean>> = {
  width: (value) =>
    typeof value === 'string' && ['normal', 'compact', 'medium', 'full', 'columns'].includes(value),
  app_title: (value) => value === null || typeof value === 'string',
  css_file: (value) => value === null || typeof value === 'string',
  html_head_file: (value) => value === null || typeof value === 'string',
  sql_output: (value) =>
    typeof value === 'string' && ['auto', 'native', 'polars', 'lazy-polars', 'pandas'].includes(value),
};

/** The environment of a kernel. */
export interface KernelSurroundings {
  readonly env: Readonly<Record<string, string>>;
  /** The folder of the server's Python interpreter, as PATH names it. */
  readonly interpreters: string;
}

/** Returns the request that makes the kernel host fork a kernel for this notebook. */
export function kernelRequest(
  launch: KernelLaunch,
  policy: LaunchPolicy,
  { env, interpreters }: KernelSurroundings,
): ChildRequest {
  const known = Object.entries(launch.appOptions).filter(([name, value]) => APP_OPTIONS[name]?.(value));
  return {
    order: {
      op: 'fork',
      memory: policy.limits.memoryBytes,
      share: launch.memoryShare ?? null,
      limits: rlimitsOf(policy.limits),
      nice: policy.limits.nice,
      is_proof: launch.isProof ?? false,
      confine: policy.confinement === null ? null : confineOrder(policy.confinement, policy.limits),
    },
    launch: {
      cwd: launch.cwd,
      env,
      user_config: policy.userConfig,
      app_metadata: {
        queryParams: {},
        cliArgs: {},
        appConfig: Object.fromEntries(known),
        argv: launch.arguments ?? [],
        filename: join(launch.cwd, launch.fileName ?? 'notebook.py'),
      },
      configs: Object.fromEntries(launch.cells.map(({ cellId, config }) => [cellId, toMarimoConfig(config)])),
      packages: launch.packages ?? null,
      element_files: launch.elementFiles ?? null,
      interpreters,
    },
    ...(launch.workspaceId === undefined ? {} : { workspaceId: launch.workspaceId }),
  };
}

/**
 * Returns the confinement settings that the kernel host needs before its first fork, to report how far it can confine
 * on this machine.
 */
export function confinementWanted({ network, uid }: Pick<Confinement, 'network' | 'uid'>) {
  return { network: network === 'host' ? 'open' : 'none', uid };
}

/**
 * Returns the confinement of a child that runs no notebook code. The child reads the system and
 * Python, writes nothing, and has no network; its launch may allow more. Null means no confinement.
 * `processes` counts processes and threads together.
 */
export function bareConfinement(
  confinement: Confinement | null,
  processes = BARE_PROCESSES,
): Record<string, unknown> | null {
  if (confinement === null) return null;
  const { hiddenPaths: hidden, uid } = confinement;
  return { hidden, uid, network: 'least', processes, tmp_mb: 1 };
}

/** Returns the confinement of a kernel as an order contains it. */
export function confineOrder(confinement: Confinement, { processes }: KernelLimits): Record<string, unknown> {
  const { hiddenPaths: hidden, readPaths: read, writePaths: write } = confinement;
  // The kernel host does not know the worker for which it starts a kernel.
  return { ...confinementWanted(confinement), hidden, read, write, processes, shield: [process.pid] };
}
