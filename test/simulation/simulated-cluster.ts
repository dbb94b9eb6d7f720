/**
 * A server with a primary and workers: the real programs of both, each in a life and a graph of modules of its own. Only the parts of the
 * system between them are stand-ins (`stand-ins/cluster.ts`, `net.ts`, `lmdb.ts`).
 */
import { rmSync } from 'node:fs';
import { join } from 'node:path';
import { serverOf } from './http/uws.ts';
import type { SimulatedZygote } from './kernel/simulated-zygote.ts';
import type { SimulatedNodes } from './simulated-nodes.ts';
import { beginLife, moduleOf } from './simulated-process.ts';
import { HOST_LOST, SimulatedServer } from './simulated-server.ts';
import { runWorkersWith, type WorkerChannel } from './stand-ins/cluster.ts';
import { diskOf } from './stand-ins/disk.ts';
import { sendSignal } from './stand-ins/processes.ts';
import { zygotesOf } from './stand-ins/zygote-process.ts';
import { type Life, OUTSIDE, textOf } from './world/world.ts';

/** A life begins without the files of its store, although there are others of an earlier life. */
const SETTINGS = { TROUPE_NEW_STORE: 'true' };
/** Ends of workers that the primary logs. */
const WORKER_ENDED = 'a worker has ended; others take over its slots';
const NOT_IN_ORDER = 'a worker that was being replaced did not stop in order';
const NOT_STORED = 'the worker has stopped before all that it had begun';
const NOT_ALL_STORED = 'the server has stopped, and changes that the disk did not take are lost';
const NOT_REPLACED = 'no other worker could start; this one goes on';

const MAX_STARTS_KILLED = 3;
const STEP_MS = 10;
/** How long after the disk was full the last commit of that time may fail. */
const AFTER_TROUBLE_MS = 1000;

type Options = Parameters<typeof import('#src/start/process/serve-as-worker.ts').serveAsWorker>[0];

export class SimulatedCluster extends SimulatedServer {
  readonly #size: number;
  #lives = 0;
  #primary: Life = OUTSIDE;
  /** Stands for the set of living processes: another one as soon as one of them ends. */
  #era: Life = { name: 'before', isOver: false };
  #workers: Life[] = [];
  /** Workers that were killed, or ended with a fault, and whose end the primary has not logged yet. */
  #killed = 0;
  #wasKilled = false;
  /** Whether the primary may say after its drain that work is lost: a worker was killed, or waited in vain for a slow disk. */
  #hasLost = false;
  /** Workers that were killed before they served. */
  #startsKilled = 0;
  #aim: 'worker' | 'server' = 'server';
  #ended: (() => void) | undefined;

  constructor(
    folder: string,
    workers: number,
    settings: Readonly<Record<string, string>> = {},
    nodes?: SimulatedNodes,
  ) {
    super(folder, settings, nodes);
    this.#size = workers;
  }

  get lives(): number {
    return this.#lives;
  }

  get life(): Life {
    return this.#era;
  }

  /** The system gives a connection to any worker that accepts. */
  receiver(): Life {
    const accepting = this.#workers.filter((life) => !life.isOver && serverOf(life)?.isListening === true);
    if (accepting.length === 0) return this.#primary;
    return accepting.length === 1 ? accepting[0]! : this.world.ofLinks.pick(accepting);
  }

  protected zygotes(): readonly SimulatedZygote[] {
    return zygotesOf(this.world).filter(({ life }) => life === this.#primary);
  }

  protected has(life: Life): boolean {
    return life === this.#primary || this.#workers.includes(life);
  }

  start(): Promise<void> {
    const life: Life = { name: `primary ${++this.#lives}`, graph: '0', isOver: false };
    this.#primary = life;
    this.isBroken = false;
    this.killedHosts = 0;
    this.#killed = 0;
    this.#wasKilled = false;
    this.#hasLost = false;
    this.#startsKilled = 0;
    this.#workers = [];
    this.#beginEra();
    rmSync(join(this.folder, 'store'), { recursive: true, force: true }); // its records are on the disk of the world
    runWorkersWith({
      program: (channel, exit, worker) => this.#runWorker(channel, exit, worker),
      begun: (worker) => void this.#workers.push(worker),
      ended: (worker) => this.#onEnded(worker),
    });
    return new Promise((resolve, reject) => {
      const ready = () => {
        this.up = this.#era;
        this.world.trace.add('life', `${this.#lives} serves`);
        resolve();
      };
      this.world.after(
        0,
        () => {
          beginLife(life.graph);
          this.#runPrimary(life).then(
            () => this.world.after(0, ready, OUTSIDE),
            (error) => this.world.after(0, () => reject(error), OUTSIDE),
          );
        },
        life,
      );
    });
  }

  kill(): void {
    if (this.#primary.isOver) return;
    this.world.trace.add('life', `${this.#lives} is killed`);
    this.world.count('crashes');
    this.#endAll();
  }

  /** Has misfortunes befall one worker, or the whole server from now on. */
  aim(at: 'worker' | 'server'): this {
    this.#aim = at;
    return this;
  }

  /** Kills one worker, if one lives. */
  killWorker(): void {
    this.killFor(this.victim());
  }

  /** A primary gives up when too many workers end before they serve, so workers are seldom killed at their start. */
  protected override victim(): Life {
    const { ofFate } = this.world;
    const isYoung = this.#startsKilled < MAX_STARTS_KILLED && ofFate.is(0.2);
    const victims = this.#workers.filter((life) => isYoung || serverOf(life) !== undefined);
    return victims.length === 0 ? OUTSIDE : ofFate.pick(victims);
  }

  protected override killFor(life: Life): void {
    if (this.#aim === 'server' || life === this.#primary) {
      this.kill();
      return;
    }
    if (life.isOver || !this.#workers.includes(life)) return;
    if (serverOf(life) === undefined) this.#startsKilled++;
    this.world.trace.add('kill', life.name);
    this.world.count('killed workers');
    this.#killed++;
    this.#wasKilled = true;
    this.#hasLost ||= this.#isDraining;
    this.world.end(life);
  }

  override async breakDisk(mostMs: number): Promise<void> {
    await super.breakDisk(mostMs);
    this.isBroken = false; // the worker whose commit has failed has ended
  }

  /** Resolves when all workers serve, or at the latest after `mostMs`. */
  async complete(mostMs: number): Promise<void> {
    const untilMs = this.world.nowMs + mostMs;
    const isComplete = () =>
      this.#workers.filter((life) => serverOf(life)?.isListening === true).length === this.#size;
    while (this.up !== undefined && !isComplete() && this.world.nowMs < untilMs)
      await this.world.sleep(STEP_MS);
  }

  /** Replaces the workers one after the other. */
  reload(): void {
    if (this.up === undefined) return;
    this.world.trace.add('life', `${this.#lives} reloads`);
    this.world.count('reloads');
    sendSignal(this.#primary, 'SIGHUP');
  }

  async drain(): Promise<void> {
    if (this.up === undefined || this.#primary.isOver) return;
    this.world.trace.add('life', `${this.#lives} drains`);
    this.world.count('drains');
    this.#hasLost = this.#killed > 0; // the primary may learn of that end during the drain
    await new Promise<void>((resolve) => {
      this.#ended = () => void this.world.after(0, resolve, OUTSIDE); // it is called in the life that ends
      sendSignal(this.#primary, 'SIGTERM');
    });
  }

  #beginEra(): void {
    this.#era.isOver = true;
    this.#era = { name: `era of life ${this.#lives}`, sinceMs: this.world.nowMs, isOver: false };
    if (this.up !== undefined) this.up = this.#era;
  }

  #onEnded(worker: Life): void {
    this.world.trace.add('end', worker.name);
    this.#workers = this.#workers.filter((other) => other !== worker);
    this.cutConnections(worker);
    this.#beginEra();
  }

  #endAll(): void {
    this.up = undefined;
    const zygotes = this.zygotes();
    for (const worker of [...this.#workers]) this.world.end(worker);
    this.world.end(this.#primary);
    for (const zygote of zygotes) zygote.serverDied();
    this.#beginEra();
    this.#ended?.();
    this.#ended = undefined;
  }

  async #runPrimary(life: Life): Promise<void> {
    const { serveWithWorkers } = await moduleOf<typeof import('#src/start/process/serve-with-workers.ts')>(
      '#src/start/process/serve-with-workers.ts',
      life,
    );
    const options = await this.#optionsOf(life, (code) => {
      if (code !== 0 && !this.#hasLost) this.complain(`the primary has ended with the code ${code}`);
      this.#endAll();
    });
    await serveWithWorkers(options, 'main.js');
  }

  #runWorker(channel: WorkerChannel, exit: (code: number) => void, life: Life): void {
    beginLife(life.graph);
    const serve = async () => {
      const { serveAsWorker } = await moduleOf<typeof import('#src/start/process/serve-as-worker.ts')>(
        '#src/start/process/serve-as-worker.ts',
        life,
      );
      const options = await this.#optionsOf(life, (code) => {
        if (code !== 0) this.#killed++;
        exit(code);
      });
      await serveAsWorker(options, channel as Parameters<typeof serveAsWorker>[1]);
    };
    serve().catch((error: unknown) => {
      this.complain(`${life.name} does not start: ${textOf(error)}`);
      exit(1);
    });
  }

  /** Resolves with the options that `main.ts` makes. */
  async #optionsOf(life: Life, end: (code: number) => void): Promise<Options> {
    const { loadConfig } = await moduleOf<typeof import('#src/base/config/config.ts')>(
      '#src/base/config/config.ts',
      life,
    );
    const { openLog } = await moduleOf<typeof import('#src/base/log/log.ts')>('#src/base/log/log.ts', life);
    const { config } = loadConfig(
      { ...this.settings, ...SETTINGS, TROUPE_WORKERS: String(this.#size) },
      { cwd: this.folder },
    );
    const log = openLog({ level: 'info', destination: { write: (line) => this.writeLog(line) } });
    return {
      config,
      log,
      secrets: [],
      end: end as Options['end'],
      fail: ((message: string) => {
        this.complain(`${life.name} has failed: ${message}`);
        end(1);
      }) as Options['fail'],
    };
  }

  get #isDraining(): boolean {
    return this.#ended !== undefined;
  }

  get #wasFull(): boolean {
    const { trouble, troubledAtMs } = diskOf(this.world);
    return trouble === 'full' || this.world.nowMs - troubledAtMs < AFTER_TROUBLE_MS;
  }

  protected override expects(message: string, fields: Readonly<Record<string, unknown>>): boolean {
    if (message === HOST_LOST) return this.killedHosts > 0; // every worker logs it
    // A shared turn cannot be tried again, so its worker ends when the disk is full before anybody has noticed.
    if (message.includes('ENOSPC')) return this.#wasFull;
    // A drain has an end, and a commit on a slow disk may take longer.
    if (message.startsWith(NOT_STORED)) {
      const isSlow = this.world.nowMs < diskOf(this.world).slowUntilMs;
      this.#hasLost ||= isSlow && this.#isDraining;
      return isSlow;
    }
    if (message.startsWith(NOT_ALL_STORED)) return this.#hasLost;
    if (message === NOT_REPLACED) return this.#wasKilled;
    if (message === WORKER_ENDED || message === NOT_IN_ORDER) return this.#killed-- > 0;
    return super.expects(message, fields);
  }
}
