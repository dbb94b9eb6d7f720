/**
 * The kernel host as a worker reaches it. The host is a child of the primary, which passes on orders and reports. For this worker the
 * host has ended when its process has ended, or when the worker has released it.
 */
import { KernelHostError } from '#src/confined/processes/host/host-error.ts';
import type {
  ChildListener,
  HostHello,
  HostName,
  KernelPlace,
  StartZygote,
  Zygote,
} from '#src/confined/processes/host/zygote-process.ts';
import type { PrimaryLink } from './primary-link.ts';

type Link = Pick<PrimaryLink, 'send' | 'on'>;

/** The hosts that the primary has. */
export class RelayedHosts {
  readonly #hosts: Readonly<Record<HostName, RelayedHost>>;

  constructor(link: Link) {
    const hosts = { usual: new RelayedHost(link, 'usual'), plain: new RelayedHost(link, 'plain') };
    this.#hosts = hosts;
    link.on('host-up', ({ host, run, hello }) => hosts[host].up(run, hello));
    link.on('host-silent', ({ host, isSilent }) => hosts[host].silent(isSilent));
    link.on('host-lost', ({ host, run }) => hosts[host].lost(run));
    link.on('host-proof', ({ host, problem }) => hosts[host].proof(problem));
    link.on('host-failed', ({ host, message }) => hosts[host].failed(message));
    link.on('child-placed', ({ host, id, key }) => hosts[host].current?.listener(id)?.placed?.(key));
    link.on('child-forked', ({ host, id, pid, isInit, node }) =>
      hosts[host].current?.listener(id)?.forked?.(pid, isInit, node),
    );
    link.on('child-lost', ({ host, id }) => hosts[host].current?.take(id)?.lost());
    link.on('child-ended', ({ host, id, end }) => hosts[host].current?.take(id)?.ended(end));
    link.on('child-refused', ({ host, id, reason }) => hosts[host].current?.take(id)?.refused(reason));
  }

  /** Returns the function that gives a supervisor (`KernelHost`) each run of the host. */
  starterOf(name: HostName): StartZygote {
    return (options) => this.#hosts[name].next(options.onSilence);
  }
}

interface Run {
  readonly run: number;
  readonly hello: HostHello;
}

interface Waiter {
  readonly resolve: (run: Run) => void;
  readonly reject: (error: Error) => void;
}

class RelayedHost {
  readonly #link: Link;
  readonly #name: HostName;
  #run: Run | undefined;
  #isSilent = false;
  /** Whether a kernel of this run has started: null, or the reason why none starts; undefined while it is not known. */
  #problem: string | null | undefined;
  #waiter: Waiter | undefined;
  #onSilence: (isSilent: boolean) => void = () => undefined;
  /** The run of the host in which this worker starts children. */
  current: RelayedZygote | undefined;

  constructor(link: Link, name: HostName) {
    this.#link = link;
    this.#name = name;
  }

  async next(onSilence: (isSilent: boolean) => void) {
    const { run, hello } = this.#run ?? (await this.#whenUp());
    const zygote: RelayedZygote = new RelayedZygote(this.#link, this.#name, run, {
      released: () => {
        this.#run = undefined; // the primary sends no report about it any more
      },
      ended: () => {
        if (this.current === zygote) this.current = undefined;
      },
      problem: () => this.#problem,
    });
    this.current = zygote;
    this.#onSilence = onSilence;
    // If the host fell silent before this worker was connected, its silence is reported as soon as the supervisor has the run.
    if (this.#isSilent) setImmediate(() => onSilence(this.#isSilent));
    return { zygote, hello };
  }

  up(run: number, hello: HostHello): void {
    this.#run = { run, hello };
    this.#isSilent = false;
    this.#problem = undefined;
    this.#waiter?.resolve(this.#run);
    this.#waiter = undefined;
  }

  silent(isSilent: boolean): void {
    this.#isSilent = isSilent;
    if (this.current !== undefined) this.#onSilence(isSilent);
  }

  proof(problem: string | null): void {
    this.#problem = problem;
    this.current?.proved(problem);
  }

  lost(run: number): void {
    if (this.#run?.run === run) this.#run = undefined;
    if (this.current?.run === run) this.current.end();
  }

  failed(message: string): void {
    this.#waiter?.reject(new KernelHostError('kernel_host_failed', message));
    this.#waiter = undefined;
  }

  #whenUp(): Promise<Run> {
    return new Promise((resolve, reject) => {
      this.#waiter = { resolve, reject };
      this.#link.send({ op: 'host-wanted', host: this.#name });
    });
  }
}

interface ZygoteEvents {
  readonly released: () => void;
  readonly ended: () => void;
  /**
   * Returns the last outcome of the check that kernels start, or undefined before the first one.
   */
  readonly problem: () => string | null | undefined;
}

class RelayedZygote implements Zygote {
  readonly run: number;
  readonly ended: Promise<void>;
  readonly #link: Link;
  readonly #host: HostName;
  readonly #listeners = new Map<string, ChildListener>();
  readonly #events: ZygoteEvents;
  #resolveEnded: () => void = () => {};
  #onProof: (problem: string | null) => void = () => {};
  #isReleased = false;
  #alive = true;

  constructor(link: Link, host: HostName, run: number, events: ZygoteEvents) {
    this.#link = link;
    this.#host = host;
    this.run = run;
    this.#events = events;
    this.ended = new Promise((resolve) => {
      this.#resolveEnded = resolve;
    });
  }

  get alive(): boolean {
    return this.#alive;
  }

  order(
    id: string,
    order: Readonly<Record<string, unknown>>,
    listener: ChildListener,
    where?: KernelPlace,
  ): void {
    this.#listeners.set(id, listener);
    this.#link.send({ op: 'child-order', host: this.#host, run: this.run, id, order, where });
  }

  signal(id: string, signal: number): void {
    if (this.#listeners.has(id))
      this.#link.send({ op: 'child-signal', host: this.#host, run: this.run, id, signal });
  }

  setBusy(id: string, isBusy: boolean): void {
    if (this.#listeners.has(id))
      this.#link.send({ op: 'child-busy', host: this.#host, run: this.run, id, isBusy });
  }

  onProof(listener: (problem: string | null) => void): void {
    this.#onProof = listener;
    const problem = this.#events.problem();
    if (problem !== undefined) listener(problem);
  }

  proved(problem: string | null): void {
    this.#onProof(problem);
  }

  /**
   * The host itself continues for other workers. For this worker, the run of the host ends when the last child of this worker has ended.
   */
  stop(): void {
    if (!this.#isReleased && this.#alive) {
      this.#link.send({ op: 'host-released', host: this.#host });
      this.#events.released();
    }
    this.#isReleased = true;
    if (this.#listeners.size === 0) this.end();
  }

  kill(): void {
    this.stop();
    this.end();
  }

  listener(id: string): ChildListener | undefined {
    return this.#listeners.get(id);
  }

  /** Returns the listener of a child and forgets it, with the last report about the child. */
  take(id: string): ChildListener | undefined {
    const listener = this.#listeners.get(id);
    this.#listeners.delete(id);
    if (this.#isReleased && this.#listeners.size === 0) setImmediate(() => this.end());
    return listener;
  }

  end(): void {
    if (!this.#alive) return;
    this.#alive = false;
    this.#events.ended();
    const listeners = [...this.#listeners.values()];
    this.#listeners.clear();
    for (const listener of listeners) listener.lost();
    this.#resolveEnded();
  }
}
