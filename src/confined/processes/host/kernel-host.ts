/**
 * Supervisor of the kernel host: one Python process that has marimo loaded and forks every kernel. It owns that process
 * and, through it, all kernels. When the process ends unexpectedly, its kernels are reported lost, and it is started again: at
 * once the first time, then with growing pauses of up to five seconds. Disposing kills every kernel and waits for the end.
 */

import { existsSync, readFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { unawaited } from '#src/base/async/unawaited.ts';
import { loadPeerProcess, type PeerProcess, UNKNOWN_PEERS } from '#src/base/os/peer-process.ts';
import type { ConvertRequest, ConvertResult } from '../children/convert.ts';
import { convertInChild } from '../children/convert.ts';
import { type EngineLaunch, EngineProcess } from '../children/engine-process.ts';
import { checkSyntaxInChild } from '../children/syntax-judge.ts';
import { type ChildEvents, type ChildPort, type ChildStarter, ConfinedChild } from '../confined-child.ts';
import type { Kernel, KernelLaunch, KernelSink } from '../kernel/kernel.ts';
import { type KernelPort, KernelProcess } from '../kernel/kernel-process.ts';
import type { FrameReading } from '../kernel-socket.ts';
import {
  type ChildRequest,
  type Confinement,
  confinementWanted,
  confineOrder,
  kernelRequest,
} from '../launch-order.ts';
import { type KernelLimits, NO_PROCESS_LIMITS } from '../limits.ts';
import { hostEnvironment, kernelEnvironment } from './environment.ts';
import { KernelHostError } from './host-error.ts';
import { findHostScript } from './host-script.ts';
import type { KernelHostOptions } from './kernel-host-options.ts';
import { proveKernels } from './kernel-proof.ts';
import { OomWatch } from './oom-watch.ts';
import { SharedZygote } from './shared-zygote.ts';
import { SocketDirectory } from './socket-directory.ts';
import { type HostHello, type StartZygote, type Zygote, ZygoteProcess } from './zygote-process.ts';

export type { HostHello };

/**
 * `silent`: the host does not respond. A silent host either responds again, or is killed and becomes
 * `restarting`.
 */
export type KernelHostState = 'starting' | 'up' | 'silent' | 'restarting' | 'down';

const BOOT_TIMEOUT_MS = 60_000;
const LAUNCH_TIMEOUT_MS = 30_000;
/** The pause between attempts to check that kernels start. */
const PROOF_PAUSE_MS = 2500;
const UNPROVEN = 'No kernel has started yet.';
const QUIET: KernelHostOptions['log'] = { info: () => {}, warn: () => {}, error: () => {} };
const RESTART_PAUSES_MS = [0, 250, 1000, 2500, 5000];
/** A host that ran this long was healthy, so its end counts as a first end again. */
const SOUND_AFTER_MS = 30_000;
/** How long the host may take to end with all kernels, and the additional time for each kernel. */
const STOP_MS = 2000;
const STOP_MS_PER_KERNEL = 20;

interface Waiter {
  readonly resolve: (zygote: Zygote) => void;
  readonly reject: (error: Error) => void;
}

export class KernelHost implements AsyncDisposable, ChildStarter {
  readonly #options: KernelHostOptions;
  readonly #hostScript: string;
  readonly #sockets: SocketDirectory;
  readonly #children: ChildPort;
  readonly #oomWatch = new OomWatch();
  readonly #kernels = new Set<KernelProcess>();
  #waiters: Waiter[] = [];
  #state: KernelHostState = 'down';
  #marimo: KernelHost['marimo'];
  #confinement: string | undefined;
  #zygote: Zygote | null = null;
  #hello: HostHello | undefined;
  #peers: PeerProcess = UNKNOWN_PEERS;
  #userConfig: unknown = null;
  #problem: string | null;
  #proven: (() => void)[] = [];
  #failures = 0;
  #restart: NodeJS.Timeout | null = null;
  #disposed = false;

  constructor(options: KernelHostOptions) {
    this.#options = options;
    this.#problem = options.proves ? UNPROVEN : null;
    this.#hostScript = options.hostScript ?? findHostScript();
    this.#sockets = new SocketDirectory(options.runDir);
    this.#children = {
      zygote: () => this.#whenUp(),
      newSocketPath: () => this.newSocketPath(),
      peers: () => this.#peers,
      log: options.log,
    };
  }

  get state(): KernelHostState {
    return this.#state;
  }

  /** The version and the folder of its marimo; undefined until the host was up for the first time. */
  get marimo(): { readonly version: string; readonly directory: string } | undefined {
    return this.#marimo;
  }

  /** One line, `full|partial|none|off: …`, with the gaps of the confinement; undefined before the first start. */
  get confinement(): string | undefined {
    return this.#confinement;
  }

  /**
   * The reason why no kernel starts, if known. Null once a kernel has started since the host came
   * up, and if there is no check.
   */
  get problem(): string | null {
    return this.#problem;
  }

  get limits(): KernelLimits {
    return { ...NO_PROCESS_LIMITS, ...this.#options.limits };
  }

  /**
   * Resolves when kernels can be forked; rejects with KernelHostError when this Python cannot fork kernels.
   * Call the method once.
   */
  async start(): Promise<HostHello> {
    this.#userConfig = JSON.parse(readFileSync(join(dirname(this.#hostScript), 'user_config.json'), 'utf8'));
    this.#enter('starting');
    const { readPaths = [], writePaths = [], log } = this.#options;
    for (const path of [...readPaths, ...writePaths]) {
      if (!existsSync(path)) log.warn({ path }, 'kernels were to have a path that does not exist');
    }
    try {
      this.#peers = await loadPeerProcess();
      return await this.#boot();
    } catch (error) {
      this.#enter('down');
      throw error;
    }
  }

  /** Resolves when the first kernel has started. */
  async proven(): Promise<void> {
    if (this.#problem !== null) await new Promise<void>((resolve) => this.#proven.push(resolve));
  }

  /**
   * Starts the part of another supervisor that uses this host. Its children are not counted here, and end with their
   * supervisor. Rejects with KernelHostError when this host is down.
   */
  readonly share: StartZygote = async () => {
    const zygote = await this.#whenUp();
    if (this.#hello === undefined)
      throw new KernelHostError('kernel_host_failed', 'The kernel host is not running.');
    return { zygote: new SharedZygote(zygote), hello: this.#hello };
  };

  /** Returns at once. The kernel waits for a host that is restarting; every outcome is reported to the sink. */
  startKernel(launch: KernelLaunch, sink: KernelSink): Kernel {
    const { log, metrics } = this.#options;
    const kernel: KernelProcess = new KernelProcess(launch, sink, {
      ...this.#kernelPort(launch),
      log,
      metrics,
      up: () => this.#proved(null),
      forget: () => this.#kernels.delete(kernel),
    });
    this.#kernels.add(kernel);
    return kernel;
  }

  #kernelPort(launch: KernelLaunch): Omit<KernelPort, 'log' | 'metrics' | 'forget'> {
    const { python, environment = process.env, launchTimeoutMs = LAUNCH_TIMEOUT_MS } = this.#options;
    return {
      ...this.#children,
      request: () =>
        kernelRequest(launch, this.#policy(), {
          env: kernelEnvironment(environment, python, launch.cwd, launch.env, launch.packages),
          interpreters: dirname(python),
        }),
      launchTimeoutMs,
      oomWatch: this.#oomWatch,
      limits: this.limits,
    };
  }

  /**
   * Reads or writes a notebook file in a process of its own, which counts towards the workspace
   * with this folder of files. Never rejects; a failure is part of the result.
   */
  async convert(request: ConvertRequest, filesDirectory: string): Promise<ConvertResult> {
    return convertInChild(request, filesDirectory, this.limits, this);
  }

  /**
   * Returns which of `codes` parse; null when the check failed. A separate process checks the codes, and
   * counts towards the workspace as a conversion does.
   */
  async checkSyntax(codes: readonly string[], filesDirectory: string): Promise<readonly boolean[] | null> {
    return checkSyntaxInChild(codes, filesDirectory, this.limits, this);
  }

  /** Returns at once. The child waits for a host that is restarting, and ends with the host. */
  startChild(
    request: (confinement: Confinement | null) => ChildRequest,
    events: ChildEvents,
    reading?: FrameReading,
  ): ConfinedChild {
    return new ConfinedChild(this.#children, () => request(this.#policy().confinement), events, reading);
  }

  /** The number of kernels that have been forked, on any machine. */
  get kernelCount(): number {
    return [...this.#kernels].filter(({ pid }) => pid !== null).length;
  }

  newSocketPath(): string {
    return this.#sockets.newPath();
  }

  /** The confinement of kernels as orders contain it; null when kernels are not confined. */
  get confinementOrder(): Readonly<Record<string, unknown>> | null {
    const { confinement, limits } = this.#policy();
    return confinement === null ? null : confineOrder(confinement, limits);
  }

  /**
   * Returns at once; the engine waits for a host that is restarting. The engine ends when it is
   * disposed of, or with the host.
   */
  startEngine(launch: EngineLaunch): EngineProcess {
    return new EngineProcess(launch, this.limits, this);
  }

  /** Called when the state of the host is requested, because an unused host is otherwise asked only seldom. */
  attend(): void {
    this.#zygote?.attend?.();
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#disposed = true;
    if (this.#restart !== null) clearTimeout(this.#restart);
    this.#enter('down');
    for (const kernel of this.#kernels) kernel.kill();
    const zygote = this.#zygote;
    if (zygote !== null) {
      zygote.stop();
      const patienceMs = STOP_MS + this.#kernels.size * STOP_MS_PER_KERNEL;
      const patience = setTimeout(() => zygote.kill(), patienceMs);
      await zygote.ended;
      clearTimeout(patience);
    }
    this.#sockets[Symbol.dispose]();
  }

  async #boot(): Promise<HostHello> {
    const { python, preload, log, confinement, environment = process.env } = this.#options;
    const startZygote: StartZygote = this.#options.startZygote ?? ZygoteProcess.start;
    const { zygote, hello } = await startZygote({
      python,
      hostScript: this.#hostScript,
      env: hostEnvironment(environment, preload, this.#wanted()),
      bootTimeoutMs: BOOT_TIMEOUT_MS,
      log,
      onSilence: (isSilent) => this.#onSilence(isSilent),
      // This process cannot see how other processes use a shared host.
      rests: this.#options.startZygote === undefined,
      shares: this.#options.shares,
    });
    const problem = this.#disposed
      ? new KernelHostError('kernel_host_failed', 'The kernel host was stopped.')
      : this.#unfit(hello);
    if (problem !== null) {
      zygote.kill();
      this.#options.onChecked?.({ confinement: hello.confinement, problem: problem.message });
      throw problem;
    }
    const upSince = performance.now();
    this.#zygote = zygote;
    this.#hello = hello;
    this.#marimo = { version: hello.marimo, directory: hello.marimoDir };
    this.#confinement =
      confinement === 'off' ? 'off: notebook code may do whatever this server may' : hello.confinement;
    unawaited(
      zygote.ended.then(() => this.#onLost(performance.now() - upSince)),
      'kernel-host: the loss of the kernel host',
    );
    if (this.#state === 'restarting') log.info({ failures: this.#failures }, 'the kernel host is back');
    this.#enter('up');
    this.#serveWaiters(zygote);
    if (this.#options.proves) {
      if (zygote.onProof === undefined)
        unawaited(this.#prove(zygote, hello), 'kernel-host: the proof that kernels start');
      else zygote.onProof((outcome) => this.#proved(outcome));
    }
    return hello;
  }

  /** Repeats the check until a kernel has started. */
  async #prove(zygote: Zygote, { layers }: HostHello): Promise<void> {
    const { confinement, readPaths = [], writePaths = [], log } = this.#options;
    while (this.#zygote === zygote && this.#problem !== null) {
      const outcome = await proveKernels({
        layers: confinement === 'off' ? null : layers,
        folder: this.newSocketPath(),
        readsAll: [...readPaths, ...writePaths].includes('/'),
        startKernel: (launch, sink) =>
          new KernelProcess(launch, sink, {
            ...this.#kernelPort(launch),
            log: QUIET,
            metrics: undefined,
            forget: () => undefined,
          }),
      });
      if (this.#zygote !== zygote || this.#disposed) return;
      if (outcome === null || this.#problem !== null) this.#proved(outcome);
      if (outcome === null) return;
      log.error({ problem: outcome }, 'no kernel can be started');
      await new Promise((resolve) => setTimeout(resolve, PROOF_PAUSE_MS).unref());
    }
  }

  #proved(problem: string | null): void {
    if (problem === this.#problem) return;
    this.#problem = problem;
    this.#options.onProof?.(problem);
    if (problem !== UNPROVEN)
      this.#options.onChecked?.({ confinement: this.#confinement ?? 'unknown', problem });
    if (problem === null) for (const resolve of this.#proven.splice(0)) resolve();
  }

  #serveWaiters(zygote: Zygote): void {
    for (const waiter of this.#waiters.splice(0)) waiter.resolve(zygote);
  }

  #onSilence(isSilent: boolean): void {
    if (this.#disposed || this.#zygote === null) return;
    if (isSilent) this.#options.log.warn({}, 'the kernel host does not respond');
    else this.#options.log.info({}, 'the kernel host responds again');
    this.#enter(isSilent ? 'silent' : 'up');
    if (!isSilent) this.#serveWaiters(this.#zygote);
  }

  #unfit(hello: HostHello): KernelHostError | null {
    const { python, confinement } = this.#options;
    if (!hello.supported) {
      const lacks = hello.missing.length === 0 ? '' : `: it lacks ${hello.missing.join(', ')}`;
      const message = `marimo ${hello.marimo} in ${python} is not one that this server can drive${lacks}. Install the pinned version.`;
      return new KernelHostError('marimo_unsupported', message);
    }
    if (confinement === 'require' && !hello.confinement.startsWith('full')) {
      const message = `Kernels cannot be fully confined on this machine (${hello.confinement}), and full confinement is required.`;
      return new KernelHostError('confinement_unavailable', message);
    }
    return null;
  }

  #onLost(livedMs: number): void {
    this.#zygote = null;
    if (this.#options.proves) this.#proved(UNPROVEN);
    if (this.#disposed) return;
    if (livedMs > SOUND_AFTER_MS) this.#failures = 0;
    this.#options.log.error(
      { livedMs: Math.round(livedMs) },
      'the kernel host has ended and is started again',
    );
    this.#enter('restarting');
    this.#scheduleBoot();
  }

  #scheduleBoot(): void {
    const pauseMs = RESTART_PAUSES_MS[Math.min(this.#failures++, RESTART_PAUSES_MS.length - 1)]!;
    this.#restart = setTimeout(() => {
      this.#boot().catch((error: unknown) => {
        if (this.#disposed) return;
        this.#options.log.error({ error }, 'the kernel host did not start again');
        this.#scheduleBoot();
      });
    }, pauseMs);
  }

  #whenUp(): Promise<Zygote> {
    if (this.#zygote?.alive && this.#state !== 'silent') return Promise.resolve(this.#zygote);
    if (this.#disposed || this.#state === 'down') {
      return Promise.reject(new KernelHostError('kernel_host_failed', 'The kernel host is not running.'));
    }
    return new Promise((resolve, reject) => this.#waiters.push({ resolve, reject }));
  }

  #enter(state: KernelHostState): void {
    if (state === this.#state) return;
    this.#state = state;
    if (state === 'down') {
      const error = new KernelHostError('kernel_host_failed', 'The kernel host is not running.');
      for (const waiter of this.#waiters.splice(0)) waiter.reject(error);
    }
  }

  #wanted() {
    const { kernelNetwork: network = 'host', kernelUid: uid = null } = this.#options;
    return confinementWanted({ network, uid });
  }

  #policy() {
    const { confinement, hiddenPaths, readPaths = [], writePaths = [] } = this.#options;
    const { kernelNetwork: network = 'host', kernelUid: uid = null } = this.#options;
    const hidden = [...new Set([...hiddenPaths, this.#sockets.path])];
    const confined = { hiddenPaths: hidden, readPaths, writePaths, network, uid };
    return {
      limits: this.limits,
      confinement: confinement === 'off' ? null : confined,
      userConfig: this.#userConfig,
    };
  }
}
