/**
 * One run of the kernel host (src/confined/python/zygote.py): orders and reports are lines of JSON. It lives as long as its stdin
 * is open. When it ends, for any reason, `ended` resolves and every child is reported as lost.
 */

import { type ChildProcessByStdio, spawn } from 'node:child_process';
import type { Socket } from 'node:net';
import { createInterface } from 'node:readline';
import type { Readable, Writable } from 'node:stream';
import { cutText } from '#src/base/text/cut-text.ts';
import type { ProcessEnd } from '../exit-classification.ts';
import { asBoolean, asList, asNumber, asRecord, asText, orNull } from '../json-shape.ts';
import { KernelHostError } from './host-error.ts';
import { HostHeartbeat, processorTicks } from './host-heartbeat.ts';
import type { ProcessorShares, WeightTaker } from './processor-shares.ts';

export interface KernelLog {
  info(details: object, message: string): void;
  warn(details: object, message: string): void;
  error(details: object, message: string): void;
}

export interface ZygoteOptions {
  readonly python: string;
  readonly hostScript: string;
  readonly env: Readonly<Record<string, string>>;
  readonly bootTimeoutMs: number;
  readonly log: KernelLog;
  /** Called with true when the host stops responding, and with false when it responds again. */
  readonly onSilence: (isSilent: boolean) => void;
  /** Whether the host is asked less often while it is not used; true when absent. */
  readonly rests?: boolean;
  /** Divides the processors among the workspaces of its kernels; absent: all kernels are equal. */
  readonly shares?: ProcessorShares | undefined;
}

export interface HostHello {
  readonly marimo: string;
  /** The folder of the installed package. */
  readonly marimoDir: string;
  readonly python: string;
  readonly supported: boolean;
  /** Private names of marimo that this host needs and cannot find. */
  readonly missing: readonly string[];
  /** One line: `full|partial|none: …`, with the gaps of the confinement. */
  readonly confinement: string;
  /** The layers of confinement that the kernel host can use. */
  readonly layers: ConfinementLayers;
  /** The weight of processor time that each control group begins with; null where groups have none. */
  readonly weight: number | null;
  readonly bootMs: number;
}

/** The layers that every kernel gets, as far as the machine has them. */
export interface ConfinementLayers {
  readonly namespaces: boolean;
  /** The version; 0: none. */
  readonly landlock: number;
  readonly seccomp: boolean;
  /** The uid of kernels; null: the server's. */
  readonly uid: number | null;
}

/** The choice of a machine for a kernel, which is not a part of the order. */
export interface KernelPlace {
  /** Kernels of one workspace are kept on one machine. */
  readonly workspaceId?: string | undefined;
  /** The port of this server at which a kernel on another machine connects. */
  readonly port?: number;
  /** Whether the kernel is to have only marimo loaded. */
  readonly isPlain?: boolean;
}

/** Reports on one child: a kernel, a converter or an engine. `ended`, `refused` or `lost` is the last report. */
export interface ChildListener {
  /**
   * `isInit`: whether the process is the first of its namespaces, which passes signals on. `node`: the other
   * machine on which the process runs; absent for this machine.
   */
  forked?(pid: number, isInit: boolean, node?: string): void;
  /** Another machine has got the order. `key` is the digest of its public key. */
  placed?(key: string): void;
  /** The child's connection, which was accepted and checked elsewhere, in place of the socket that the order names. */
  connected?(socket: Socket): void;
  ended(end: ProcessEnd): void;
  refused(reason: string): void;
  lost(): void;
}

type Fields = Readonly<Record<string, unknown>>;

/** One run of the kernel host, from the view of its users. */
export interface Zygote {
  readonly alive: boolean;
  /** Resolves when the kernel host has ended. */
  readonly ended: Promise<void>;
  /** Asks for a child process (`fork`, `convert` or `engine`) of a host that is `alive`; `id` is new for each. */
  order(id: string, order: Fields, listener: ChildListener, where?: KernelPlace): void;
  /** Signals a child. Harmless when the child is gone. */
  signal(id: string, signal: number): void;
  /** Notes whether a kernel works, for its part of the processors. Absent where kernels have no parts of their own. */
  setBusy?(id: string, isBusy: boolean): void;
  /** Called when the host's state is requested, to check whether it responds. Absent where the host is checked regularly. */
  attend?(): void;
  /**
   * Present where another process checks that kernels start (kernel-proof.ts). Calls `listener`
   * with each outcome: null, or the reason why none starts.
   */
  onProof?(listener: (problem: string | null) => void): void;
  /** Ends the host and every child in order. */
  stop(): void;
  /** Ends the host and every child, even if the host does not respond. */
  kill(): void;
}

/**
 * Resolves once kernels can be forked. When that fails, rejects with KernelHostError and leaves no
 * process behind.
 */
export type StartZygote<Z extends Zygote = Zygote> = (
  options: ZygoteOptions,
) => Promise<{ readonly zygote: Z; readonly hello: HostHello }>;

/** The host with the usual libraries, and the host that has only marimo loaded. */
export type HostName = 'usual' | 'plain';
/** Returns the function that starts a host. */
export type StarterOf = (name: HostName) => StartZygote;

/** The same bound as in `python/forking/inbox.py`, so that the order of one child does not delay the others. */
const MAX_ORDER_BYTES = 64 * 1024;

export class ZygoteProcess implements Zygote {
  readonly #child: ChildProcessByStdio<Writable, Readable, Readable>;
  readonly #log: KernelLog;
  readonly #listeners = new Map<string, ChildListener>();
  readonly #hello = deferred<HostHello>();
  readonly #ended = deferred<void>();
  readonly #heartbeat: HostHeartbeat;
  readonly #shares: ProcessorShares | undefined;
  #taker: WeightTaker | undefined;
  /**
   * The pid of the process that forks kernels: first the zygote, which the guardian has forked, and later the zygote's next
   * generation.
   */
  #pid: number | null = null;
  #alive = true;
  #isUp = false;
  #lastWords = '';

  static readonly start: StartZygote<ZygoteProcess> = async (options) => {
    const zygote = new ZygoteProcess(options);
    const timeout = setTimeout(() => {
      zygote.#hello.reject(
        new KernelHostError('kernel_host_failed', 'The kernel host did not start in time.'),
      );
    }, options.bootTimeoutMs);
    try {
      return { zygote, hello: await zygote.#hello.promise };
    } catch (error) {
      zygote.kill();
      throw error;
    } finally {
      clearTimeout(timeout);
    }
  };

  private constructor(options: ZygoteOptions) {
    this.#log = options.log;
    this.#shares = options.shares;
    this.#heartbeat = new HostHeartbeat({
      ask: () => this.#say({ op: 'ping' }),
      workDone: () => (this.#pid === null ? undefined : processorTicks(this.#pid)),
      onSilence: options.onSilence,
      rests: options.rests,
      onLost: () => {
        this.#log.error({}, 'the kernel host did not respond for too long and is killed');
        this.kill();
      },
    });
    // The host gets a session of its own, so that Ctrl-C in a terminal reaches only the server,
    // which then ends the host in order.
    this.#child = spawn(options.python, [options.hostScript], {
      env: options.env,
      stdio: ['pipe', 'pipe', 'pipe'],
      detached: true,
    });
    this.#child.once('error', (cause) => this.#end(spawnError(options.python, cause)));
    // 'close', not 'exit': the error includes the last output.
    this.#child.once('close', (code, signal) => this.#end(this.#bootError(code, signal)));
    this.#child.stdin.on('error', () => {}); // 'close' follows and is handled
    createInterface({ input: this.#child.stdout })
      .on('line', (line) => this.#hear(line))
      .on('close', () => {
        if (this.#isUp) this.kill(); // the zygote is gone, even if its guardian still runs
      });
    createInterface({ input: this.#child.stderr }).on('line', (line) => {
      this.#lastWords = line.trim() || this.#lastWords;
      this.#log.warn({ line }, 'kernel host');
    });
  }

  /** The pid of the host's first process, the guardian. */
  get guardian(): number | undefined {
    return this.#child.pid;
  }

  get alive(): boolean {
    return this.#alive;
  }

  get ended(): Promise<void> {
    return this.#ended.promise;
  }

  order(id: string, order: Fields, listener: ChildListener, where?: KernelPlace): void {
    const line = JSON.stringify({ ...order, id });
    const bytes = Buffer.byteLength(line);
    if (bytes > MAX_ORDER_BYTES) {
      const reason = `The order has ${bytes} bytes, and ${MAX_ORDER_BYTES} are the most: fewer paths can be hidden or opened.`;
      setImmediate(() => listener.refused(reason));
      return;
    }
    this.#listeners.set(id, listener);
    this.#write(line);
    this.#heartbeat.used();
    if (where?.workspaceId !== undefined && this.#taker !== undefined)
      this.#shares?.enter(id, where.workspaceId, this.#taker);
  }

  signal(id: string, signal: number): void {
    if (!this.#listeners.has(id)) return;
    this.#say({ op: 'signal', id, signal });
    this.#heartbeat.used();
  }

  setBusy(id: string, isBusy: boolean): void {
    this.#shares?.setBusy(id, isBusy);
  }

  attend(): void {
    this.#heartbeat.attend();
  }

  /** Renews the lease of a host that has one. */
  renewLease(): void {
    this.#say({ op: 'ping' });
  }

  /** Closes the host's stdin. The host then kills every kernel and ends. */
  stop(): void {
    this.#child.stdin.end();
  }

  /** Ends a host that does not respond, even a stopped one. Its guardian kills it and the kernels. */
  kill(): void {
    this.#child.stdin.destroy();
    this.#child.kill('SIGTERM');
    this.#child.kill('SIGCONT'); // the guardian may have been stopped together with the zygote
    this.#end(this.#bootError(null, null));
  }

  #say(message: Fields): void {
    this.#write(JSON.stringify(message));
  }

  #write(line: string): void {
    if (this.#alive && this.#child.stdin.writable) this.#child.stdin.write(`${line}\n`);
  }

  #hear(line: string): void {
    try {
      this.#take(asRecord(JSON.parse(line), 'the report'));
    } catch (error) {
      this.#log.error(
        { error, line: cutText(line, 0, 200) },
        'the kernel host sent a report that cannot be read',
      );
    }
  }

  #take(report: Fields): void {
    const id = orNull(report.id, asText, 'id');
    const listener = id === null ? undefined : this.#listeners.get(id);
    if (report.op === 'hello') {
      const hello = decodeHello(report);
      this.#hello.resolve(hello);
      if (hello.weight !== null)
        this.#taker = { whole: hello.weight, weigh: (weights) => this.#say({ op: 'weigh', weights }) };
      this.#pid = orNull(report.pid, asNumber, 'pid');
      this.#isUp = true;
      if (this.#alive) this.#heartbeat.start();
    } else if (report.op === 'preloaded') {
      this.#pid = orNull(report.pid, asNumber, 'pid');
    } else if (report.op === 'pong') {
      this.#heartbeat.answered();
    } else if (report.op === 'forked') {
      listener?.forked?.(asNumber(report.pid, 'pid'), asBoolean(report.init, 'init'));
    } else if (report.op === 'exited' && id !== null) {
      this.#forget(id);
      const words = asText(report.words, 'words');
      if (words !== '')
        this.#log.warn({ id, words }, 'a process of the kernel host ended before it could work');
      listener?.ended({
        words,
        code: asNumber(report.code, 'code'),
        signal: orNull(report.signal, asNumber, 'signal'),
        outOfMemory: asBoolean(report.out_of_memory, 'out_of_memory'),
      });
    } else if (report.op === 'refused') {
      const reason = asText(report.error, 'error');
      this.#log.warn({ id, reason }, 'the kernel host refused an order');
      if (id !== null) this.#forget(id);
      listener?.refused(reason);
    }
  }

  #forget(id: string): void {
    this.#listeners.delete(id);
    this.#shares?.leave(id);
  }

  #end(error: KernelHostError): void {
    if (!this.#alive) return;
    this.#alive = false;
    this.#heartbeat[Symbol.dispose]();
    this.#hello.reject(error);
    const listeners = [...this.#listeners.values()];
    for (const id of this.#listeners.keys()) this.#forget(id);
    for (const listener of listeners) listener.lost();
    this.#ended.resolve();
  }

  #bootError(code: number | null, signal: string | null): KernelHostError {
    if (/No module named '?(marimo|msgspec)\b/.test(this.#lastWords)) {
      return new KernelHostError(
        'marimo_unsupported',
        `${this.#child.spawnfile} has no marimo: ${this.#lastWords}. Install marimo there, or set TROUPE_PYTHON to an interpreter that has it.`,
      );
    }
    const how = signal ?? (code === null ? 'it was stopped' : `exit code ${code}`);
    const words = this.#lastWords === '' ? '' : `: ${this.#lastWords}`;
    return new KernelHostError('kernel_host_failed', `The kernel host ended (${how})${words}`);
  }
}

function deferred<T>() {
  let resolve: (value: T) => void = () => {};
  let reject: (error: Error) => void = () => {};
  const promise = new Promise<T>((onValue, onError) => {
    resolve = onValue;
    reject = onError;
  });
  promise.catch(() => {}); // otherwise a rejection before anything awaits it would be unhandled
  return { promise, resolve, reject };
}

function spawnError(python: string, cause: Error): KernelHostError {
  const message = `Cannot start Python at ${python}: ${cause.message}. Run the setup, or set TROUPE_PYTHON to an interpreter with marimo.`;
  return new KernelHostError('python_missing', message, { cause });
}

function decodeHello(report: Fields): HostHello {
  return {
    marimo: asText(report.marimo, 'marimo'),
    marimoDir: asText(report.marimo_dir, 'marimo_dir'),
    python: asText(report.python, 'python'),
    supported: asBoolean(report.supported, 'supported'),
    missing: asList(report.missing, asText, 'missing'),
    confinement: asText(report.confinement, 'confinement'),
    layers: decodeLayers(asRecord(report.layers, 'layers')),
    weight: orNull(report.weight, asNumber, 'weight'),
    bootMs: asNumber(report.ms, 'ms'),
  };
}

function decodeLayers(layers: Fields): ConfinementLayers {
  return {
    namespaces: asBoolean(layers.namespaces, 'namespaces'),
    landlock: asNumber(layers.landlock, 'landlock'),
    seccomp: asBoolean(layers.seccomp, 'seccomp'),
    uid: orNull(layers.uid, asNumber, 'uid'),
  };
}
