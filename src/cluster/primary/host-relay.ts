/**
 * Connects all workers to one kernel host. The relay passes on the workers' orders, sends each report to the worker that owns the
 * child, and kills the children of a worker that has ended.
 */

import { unawaited } from '#src/base/async/unawaited.ts';
import {
  type ChildListener,
  type HostHello,
  type HostName,
  type StartZygote,
  type Zygote,
  ZygoteProcess,
} from '#src/confined/processes/host/zygote-process.ts';
import type { HostOrder, HostReport } from '../messages.ts';

const SIGKILL = 9;

type ChildOrder = Extract<HostOrder, { op: 'child-order' }>;

interface Run {
  readonly number: number;
  readonly zygote: Zygote;
  readonly hello: HostHello;
}

export class HostRelay {
  readonly #name: HostName;
  readonly #startZygote: StartZygote;
  readonly #tell: (worker: number, report: HostReport) => void;
  /** The workers that get the reports of the host. */
  readonly #listening = new Set<number>();
  /** The worker of each child that has not ended, by the child's id. */
  readonly #children = new Map<string, number>();
  #runs = 0;
  #run: Run | undefined;
  /** Whether a kernel of this run has started: null, or the reason why none starts; undefined while it is not known. */
  #problem: string | null | undefined;

  /** `start` starts the host. */
  constructor(
    name: HostName,
    tell: (worker: number, report: HostReport) => void,
    start: StartZygote = ZygoteProcess.start,
  ) {
    this.#name = name;
    this.#tell = tell;
    this.#startZygote = start;
  }

  /** Whether any worker has or wants children of the host. */
  get isWanted(): boolean {
    return this.#listening.size > 0;
  }

  /** Starts a run of the host, for its supervisor. */
  readonly start: StartZygote = async (options) => {
    const { zygote, hello } = await this.#startZygote({
      ...options,
      onSilence: (isSilent) => {
        options.onSilence(isSilent);
        this.#tellAll({ op: 'host-silent', host: this.#name, isSilent });
      },
    });
    const run = { number: ++this.#runs, zygote, hello };
    this.#run = run;
    unawaited(
      zygote.ended.then(() => this.#onEnded(run)),
      'host-relay: the end of a kernel host',
    );
    this.#tellAll({ op: 'host-up', host: this.#name, run: run.number, hello });
    return { zygote, hello };
  };

  /** Reports that the host cannot be started. Workers that want the host ask again. */
  failed(message: string): void {
    this.#tellAll({ op: 'host-failed', host: this.#name, message });
    this.#listening.clear();
  }

  /** Called with each outcome of the check that kernels start. */
  readonly proved = (problem: string | null): void => {
    this.#problem = problem;
    this.#tellAll({ op: 'host-proof', host: this.#name, problem });
  };

  take(worker: number, order: HostOrder): void {
    if (order.op === 'host-wanted') this.#addListener(worker);
    else if (order.op === 'host-released') this.forget(worker);
    else if (order.run !== this.#run?.number)
      return; // the child's worker gets a report that the run was lost
    else if (order.op === 'child-order') this.#order(this.#run.zygote, worker, order);
    else if (this.#children.get(order.id) !== worker) return;
    else if (order.op === 'child-busy') this.#run.zygote.setBusy?.(order.id, order.isBusy);
    else this.#run.zygote.signal(order.id, order.signal);
  }

  /** Kills the children of a worker. The worker gets no report about them. */
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

  #order(zygote: Zygote, worker: number, { id, order, where }: ChildOrder): void {
    const host = this.#name;
    this.#children.set(id, worker);
    const listener: ChildListener = {
      placed: (key) => this.#tell(worker, { op: 'child-placed', host, id, key }),
      forked: (pid, isInit, node) => this.#tell(worker, { op: 'child-forked', host, id, pid, isInit, node }),
      ended: (end) => {
        this.#children.delete(id);
        this.#tell(worker, { op: 'child-ended', host, id, end });
      },
      refused: (reason) => {
        this.#children.delete(id);
        this.#tell(worker, { op: 'child-refused', host, id, reason });
      },
      lost: () => {
        this.#children.delete(id);
        this.#tell(worker, { op: 'child-lost', host, id });
      },
    };
    zygote.order(id, order, listener, where);
  }

  #onEnded(run: Run): void {
    if (this.#run === run) this.#run = undefined;
    this.#tellAll({ op: 'host-lost', host: this.#name, run: run.number });
  }

  #tellAll(report: HostReport): void {
    for (const worker of this.#listening) this.#tell(worker, report);
  }
}
