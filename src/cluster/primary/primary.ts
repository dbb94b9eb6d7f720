/**
 * The process above the workers. It starts and watches the workers, and replaces those that have ended. The primary serves no
 * requests and has no open store.
 */
import cluster from 'node:cluster';
import { randomBytes } from 'node:crypto';
import { closeSync, rmSync } from 'node:fs';
import { VERSION } from '#src/base/install/version.ts';
import type { Log } from '#src/base/log/log.ts';
import {
  type AskedQuestion,
  type HostOrder,
  type ToPrimary,
  type ToWorker,
  WORKER_ARGUMENT,
} from '../messages.ts';
import { peerSocketPath } from '../worker/primary-link.ts';
import { Assignment } from './assignment.ts';
import { Restarts } from './restarts.ts';
import { type Duty, LOOK_MS, processState } from './watchdog.ts';
import { type WorkerEnd, WorkerProcess } from './worker-process.ts';

export interface PrimaryOptions {
  /** How many workers the server should have. */
  readonly size: number;
  /** The file that a worker runs. */
  readonly program: string;
  /**
   * The descriptors that workers inherit (`INHERITED`): the claim, the socket for clients, and perhaps the socket for proxies.
   * The sockets are closed when the server drains.
   */
  readonly claim: number;
  readonly sockets: readonly number[];
  /** The folder of the sockets of workers and kernels. */
  readonly socketFolder: string;
  readonly log: Log;
  /** Takes a worker's messages that are not about the cluster itself. */
  readonly took: (worker: number, message: AskedQuestion | HostOrder) => void;
  /** Called when a worker has ended, before its slots move to others. */
  readonly ended: (worker: number) => void;
  /** Called with the reason, as one line, when the server cannot continue. */
  readonly onHopeless: (problem: string) => void;
}

export class Primary {
  readonly #options: PrimaryOptions;
  readonly #workers = new Map<number, WorkerProcess>();
  readonly #assignment: Assignment;
  readonly #secret = randomBytes(32).toString('hex');
  readonly #restarts = new Restarts();
  readonly #watch: NodeJS.Timeout;
  /** The states of the workers, and their list. */
  readonly #changes = new Changes();
  #lastNumber = 0;
  /** Whether the workers may open the store. */
  #isOpen = false;
  #nextStart: NodeJS.Timeout | undefined;
  /** Resolves the promise of the drain when all workers have ended. */
  #onEmpty: (() => void) | undefined;
  #hasLost = false;
  #hasServed = false;
  #url = '';
  #isRolling = false;

  constructor(options: PrimaryOptions) {
    this.#options = options;
    this.#assignment = new Assignment(this.#workers);
    const { program, claim, sockets } = options;
    cluster.setupPrimary({
      exec: program,
      execArgv: process.sourceMapsEnabled ? [...process.execArgv, '--enable-source-maps'] : process.execArgv,
      stdio: ['ignore', 'inherit', 'inherit', 'ipc', claim, ...sockets],
    });
    this.#startMissing();
    this.#watch = setInterval(() => this.#look(), LOOK_MS);
  }

  /** Lets the workers open the store and serve at the port. Resolves with the URL once all of them serve. */
  async open(port: number): Promise<string> {
    this.#isOpen = true;
    this.#assignment.deal(port);
    for (const worker of this.#workers.values()) if (worker.isLoaded) this.#giveOrders(worker);
    const { size } = this.#options;
    const serving = () => [...this.#workers.values()].filter(({ phase }) => phase === 'serving');
    await this.#changes.until(() => serving().length >= size);
    this.#hasServed = true;
    return this.#url;
  }

  send(worker: number, message: ToWorker): void {
    this.#workers.get(worker)?.send(message);
  }

  /** Drains every worker. Resolves when all have ended, with true if all their work was stored. */
  async drain(signal: string): Promise<boolean> {
    clearTimeout(this.#nextStart);
    const { log, sockets } = this.#options;
    const startedAt = performance.now();
    log.info({ signal, workers: this.#workers.size }, 'the server drains');
    // As long as this process had the sockets open, the system would accept connections that no worker serves.
    for (const socket of sockets) closeSync(socket);
    await new Promise<void>((resolve) => {
      this.#onEmpty = resolve;
      for (const worker of this.#workers.values()) worker.drain(signal);
      if (this.#workers.size === 0) resolve();
    });
    clearInterval(this.#watch);
    this.#assignment[Symbol.dispose]();
    log.info({ ms: Math.round(performance.now() - startedAt) }, 'all workers have stopped');
    return !this.#hasLost;
  }

  /** Replaces the workers one after the other. Each one is drained once its replacement serves. */
  async replaceAll(): Promise<void> {
    const { log } = this.#options;
    if (this.#isRolling || this.#isDraining || !this.#hasServed) {
      log.warn(
        {},
        'the workers are not replaced now, because the server starts, stops or replaces them already',
      );
      return;
    }
    this.#isRolling = true;
    log.info({ workers: this.#workers.size }, 'the workers are replaced one after the other');
    for (const old of [...this.#workers.values()]) {
      if (this.#isDraining) break;
      if (!this.#workers.has(old.number)) continue; // already replaced after its own end
      if (await this.#replace(old)) continue;
      if (!this.#isDraining)
        log.error({ worker: old.number }, 'no other worker could start; this one goes on');
      break;
    }
    this.#isRolling = false;
    log.info({ workers: this.#workers.size }, 'workers are replaced no longer');
  }

  async #replace(old: WorkerProcess): Promise<boolean> {
    const heir = this.#startWorker();
    heir.replaces = old;
    old.isRetiring = true;
    const isDecided = () => heir.phase === 'serving' || !this.#workers.has(heir.number);
    await this.#changes.until(() => this.#isDraining || isDecided());
    if (this.#isDraining || heir.phase !== 'serving') return false;
    old.heir = heir;
    if (this.#workers.has(old.number)) old.drain('SIGHUP');
    await this.#changes.until(() => this.#isDraining || !this.#workers.has(old.number));
    return true;
  }

  get #isDraining(): boolean {
    return this.#onEmpty !== undefined;
  }

  /**
   * Lets draining workers finish, all at once: the last events of one worker may reach its subscribers through another.
   */
  #finish(): void {
    const draining = [...this.#workers.values()].filter(({ phase }) => phase === 'draining');
    if (this.#isDraining && draining.some(({ isSuspended }) => !isSuspended)) return;
    for (const worker of draining) if (worker.isSuspended) worker.send({ op: 'finish' });
  }

  #startMissing(): void {
    const present = [...this.#workers.values()].filter(({ isRetiring }) => !isRetiring).length;
    for (let missing = this.#options.size - present; missing > 0; missing--) this.#startWorker();
  }

  #startWorker(): WorkerProcess {
    const number = ++this.#lastNumber;
    cluster.setupPrimary({ args: [WORKER_ARGUMENT, String(number)] });
    const worker = new WorkerProcess(number, cluster.fork(), {
      told: (from, message) => this.#take(from, message),
      ended: (from, end) => this.#onEnded(from, end),
    });
    this.#workers.set(number, worker);
    return worker;
  }

  #take(worker: WorkerProcess, message: ToPrimary): void {
    const assignment = this.#assignment;
    if (message.op === 'beat') {
      worker.watch.beat();
      worker.send({ op: 'beat' });
    } else if (message.op === 'loaded') {
      worker.isLoaded = true;
      if (this.#isOpen) this.#giveOrders(worker);
    } else if (message.op === 'join') assignment.joined(worker, message.table);
    else if (message.op === 'knows') assignment.knows(worker, message.table);
    else if (message.op === 'released') assignment.released(worker, message.table, message.slots);
    else if (message.op === 'listening') {
      this.#url = message.url;
      assignment.listening(worker);
      this.#changes.notify();
    } else if (message.op === 'suspended') {
      worker.isSuspended = true;
      this.#finish();
    } else if (message.op === 'failed') {
      worker.problem = message.message;
      if (!this.#hasServed) this.#options.onHopeless(message.message);
    } else this.#options.took(worker.number, message);
  }

  #giveOrders(worker: WorkerProcess): void {
    const { size, socketFolder, sockets } = this.#options;
    worker.phase = 'opening';
    const table = this.#assignment.tableFor(worker);
    const { number } = worker;
    worker.send({
      op: 'begin',
      version: VERSION,
      worker: number,
      size,
      secret: this.#secret,
      table,
      socketFolder,
      servesProxies: sockets.length > 1,
    });
  }

  #onEnded(worker: WorkerProcess, { code, how }: WorkerEnd): void {
    const { number, phase, replaces } = worker;
    const { log, socketFolder, ended } = this.#options;
    this.#workers.delete(number);
    rmSync(peerSocketPath(socketFolder, number), { force: true });
    ended(number);
    if (replaces !== undefined && !worker.hasServed) replaces.isRetiring = false;
    if (this.#isDraining) {
      if (phase === 'draining') this.#hasLost ||= code !== 0;
      if (this.#workers.size === 0) this.#onEmpty?.();
      this.#finish();
    } else {
      this.#assignment.ended(worker);
      // A replaced worker reports its unstored work itself. It is not one of the workers that stop with the server.
      if (phase === 'draining' && code !== 0)
        log.error(
          { worker: number, because: worker.fault ?? how },
          'a worker that was being replaced did not stop in order',
        );
      if (phase !== 'draining' && !worker.isUnneeded) {
        const because = worker.fault ?? worker.problem ?? how;
        log.error({ worker: number, because }, 'a worker has ended; others take over its slots');
        this.#replaceEnded(worker, because);
      }
    }
    this.#changes.notify();
  }

  #replaceEnded({ startedAt, hasServed }: WorkerProcess, because: string): void {
    const isAnyServing = [...this.#workers.values()].some((worker) => worker.phase === 'serving');
    const livedMs = performance.now() - startedAt;
    const pauseMs = this.#restarts.next({ livedMs, hasServed, isAnyServing });
    if (pauseMs === undefined) {
      this.#options.onHopeless(
        `Workers of this server end before they serve, again and again. The last one: ${because}`,
      );
      return;
    }
    clearTimeout(this.#nextStart);
    this.#nextStart = setTimeout(() => this.#startMissing(), pauseMs);
  }

  #look(): void {
    for (const worker of this.#workers.values()) {
      const state = processState(worker.pid);
      const fault = state && worker.watch.look(state, dutyOf(worker));
      if (fault === undefined || worker.fault !== undefined) continue;
      worker.fault = fault;
      worker.kill();
    }
  }
}

function dutyOf({ hasServed, phase }: WorkerProcess): Duty {
  if (phase === 'draining') return 'ending';
  return hasServed ? 'serving' : 'starting';
}

/** Waits until conditions hold, for objects that report each of their changes. */
class Changes {
  readonly #checks = new Set<() => void>();

  /** Resolves when `fact` holds, at once or after a change. */
  until(fact: () => boolean): Promise<void> {
    return new Promise((resolve) => {
      const check = () => {
        if (!fact()) return;
        this.#checks.delete(check);
        resolve();
      };
      this.#checks.add(check);
      check();
    });
  }

  /** Checks all awaited conditions, because something has changed. */
  notify(): void {
    for (const check of this.#checks) check();
  }
}
