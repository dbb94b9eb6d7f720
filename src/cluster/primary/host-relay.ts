/**
 * One kernel host for all workers: orders of workers go to it, and its reports to the worker whose child they are about.
 * The children of a worker that has ended are killed.
 */
import {
  type HostHello,
  type StartZygote,
  type Zygote,
  ZygoteProcess,
} from '#src/confined/host/zygote-process.ts';
import type { HostName, HostOrder, HostReport } from '../messages.ts';

const SIGKILL = 9;

interface Run {
  readonly number: number;
  readonly zygote: Zygote;
  readonly hello: HostHello;
}

export class HostRelay {
  readonly #name: HostName;
  readonly #tell: (worker: number, report: HostReport) => void;
  /** The workers that hear of the host. */
  readonly #listening = new Set<number>();
  /** The worker of each child that has not ended, by the child's id. */
  readonly #children = new Map<string, number>();
  #runs = 0;
  #run: Run | undefined;
  /** Whether a kernel of this run has started: null, or the reason why none starts; undefined while it is not known. */
  #problem: string | null | undefined;

  constructor(name: HostName, tell: (worker: number, report: HostReport) => void) {
    this.#name = name;
    this.#tell = tell;
  }

  /** Whether any worker has or wants children of the host. */
  get isWanted(): boolean {
    return this.#listening.size > 0;
  }

  /** Starts a run of the host, for its supervisor. */
  readonly start: StartZygote = async (options) => {
    const { zygote, hello } = await ZygoteProcess.start({
      ...options,
      onSilence: (isSilent) => {
        options.onSilence(isSilent);
        this.#tellAll({ op: 'host-silent', host: this.#name, isSilent });
      },
    });
    const run = { number: ++this.#runs, zygote, hello };
    this.#run = run;
    void zygote.ended.then(() => this.#onEnded(run));
    this.#tellAll({ op: 'host-up', host: this.#name, run: run.number, hello });
    return { zygote, hello };
  };

  /** Reports that there will be no host. Workers that want it ask again. */
  failed(message: string): void {
    this.#tellAll({ op: 'host-failed', host: this.#name, message });
    this.#listening.clear();
  }

  /** Called with each outcome of the proof that kernels start. */
  readonly proved = (problem: string | null): void => {
    this.#problem = problem;
    this.#tellAll({ op: 'host-proof', host: this.#name, problem });
  };

  take(worker: number, order: HostOrder): void {
    if (order.op === 'host-wanted') this.#addListener(worker);
    else if (order.op === 'host-released') this.forget(worker);
    else if (order.run !== this.#run?.number)
      return; // its worker hears that the run was lost
    else if (order.op === 'child-order') this.#order(this.#run.zygote, worker, order.id, order.order);
    else if (this.#children.get(order.id) === worker) this.#run.zygote.signal(order.id, order.signal);
  }

  /** Kills the children of a worker, which hears nothing more. */
  forget(worker: number): void {
    this.#listening.delete(worker);
    for (const [id, owner] of this.#children) if (owner === worker) this.#run?.zygote.signal(id, SIGKILL);
  }

  #addListener(worker: number): void {
    this.#listening.add(worker);
    if (this.#run === undefined) return;
    const { number: run, hello } = this.#run;
    this.#tell(worker, { op: 'host-up', host: this.#name, run, hello });
    if (this.#problem !== undefined)
      this.#tell(worker, { op: 'host-proof', host: this.#name, problem: this.#problem });
  }

  #order(zygote: Zygote, worker: number, id: string, order: Readonly<Record<string, unknown>>): void {
    const host = this.#name;
    this.#children.set(id, worker);
    zygote.order(id, order, {
      forked: (pid, isInit) => this.#tell(worker, { op: 'child-forked', host, id, pid, isInit }),
      ended: (end) => {
        this.#children.delete(id);
        this.#tell(worker, { op: 'child-ended', host, id, end });
      },
      refused: (reason) => {
        this.#children.delete(id);
        this.#tell(worker, { op: 'child-refused', host, id, reason });
      },
      lost: () => this.#children.delete(id),
    });
  }

  #onEnded(run: Run): void {
    if (this.#run === run) this.#run = undefined;
    this.#tellAll({ op: 'host-lost', host: this.#name, run: run.number });
  }

  #tellAll(report: HostReport): void {
    for (const worker of this.#listening) this.#tell(worker, report);
  }
}
