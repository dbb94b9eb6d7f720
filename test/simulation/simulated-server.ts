/** The server of a simulation: its lives one after the other, on one disk. Each life is the real app, and what is around it is not. */
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import type { Connection } from './http/connection.ts';
import { serverOf, uws } from './http/uws.ts';
import type { Child, SimulatedZygote } from './kernel/simulated-zygote.ts';
import type { SimulatedNodes } from './simulated-nodes.ts';
import { diskOf } from './stand-ins/disk.ts';
import { type Life, OUTSIDE, type World, world } from './world/world.ts';

export const TOKEN = 'token-of-the-owner-of-everything';
export const WORKSPACE = 'ws_home';
export const HOST_LOST = 'the kernel host has ended and is started again';
const UWS = 'uws.cjs';
const STEP_MS = 10;
/** How many moments pass at most before a crash at one of them. */
const MAX_POINTS = 12;
/** The same, of moments of one kind. */
const MAX_POINTS_OF_KIND = 4;
/** How long after such a moment a crash comes at the latest. */
const MAX_AFTER_MS = 40;
/** How often a full disk has space again before the server looks at it. */
const BRIEF = 0.4;
const MAX_BRIEF_MS = 60;
/** The path of one notebook session. */
const SESSION = /^\/api\/v3\/notebook-sessions\/\w+$/;
/** The longest text of a field that is repeated in a problem. */
const MAX_FIELDS_CHARS = 600;

/** The kinds of moments around which a server is killed. */
export type Moments = 'jobs' | 'hooks';
const PREFIXES: Readonly<Record<Moments, string>> = { jobs: 'job.', hooks: 'hook.' };

declare global {
  /** The module that the server loads in place of uWebSockets.js. */
  var simulatedUws: unknown;
}
globalThis.simulatedUws = uws;

/** The server as its users and the misfortunes of a simulation see it. */
export abstract class SimulatedServer {
  protected readonly world: World = world();
  protected readonly folder: string;
  readonly #settings: Readonly<Record<string, string>>;
  readonly #nodes: SimulatedNodes | undefined;
  readonly #connections = new Set<Connection>();
  /** How many kernel hosts were killed whose loss the server has not logged yet. */
  protected killedHosts = 0;
  /** Whether the disk was broken in this life. */
  protected isBroken = false;
  /** The life that serves; undefined while none does. */
  up: Life | undefined;

  /** `folder` is empty, and the caller removes it at the end. */
  constructor(
    folder: string,
    settings: Readonly<Record<string, string>> = {},
    nodes: SimulatedNodes | undefined = undefined,
  ) {
    this.folder = folder;
    this.#settings = settings;
    this.#nodes = nodes;
    writeFileSync(join(folder, UWS), 'module.exports = globalThis.simulatedUws;\n');
  }

  /** The present life. It is another one as soon as a process of the server has ended. */
  abstract get life(): Life;

  /** How many lives the server has begun. */
  abstract get lives(): number;

  /** Returns the process that gets the next connection of a client. */
  abstract receiver(): Life;

  /** Resolves when the server serves. Rejects when it does not start, unless it was killed before. */
  abstract start(): Promise<void>;

  /** Kills the server. */
  abstract kill(): void;

  /** Ends the server in order. */
  abstract drain(): Promise<void>;

  /** The kernel hosts of the present life. */
  protected abstract zygotes(): readonly SimulatedZygote[];

  /** Returns whether a process of the present life is the one of `life`. */
  protected abstract has(life: Life): boolean;

  /** Sends a request to the process that its connection names. */
  send(connection: Connection): void {
    this.#connections.add(connection);
    connection.send(serverOf(connection.life));
  }

  /** The client has left, or has got everything. */
  forget(connection: Connection): void {
    this.#connections.delete(connection);
  }

  /** Ends the connections of a process that has ended. */
  protected cutConnections(life: Life): void {
    for (const connection of [...this.#connections]) {
      if (connection.life !== life) continue;
      this.#connections.delete(connection);
      connection.serverDied();
    }
  }

  /** The next commit fails for good. Resolves when the server has ended because of that, or at the latest after `mostMs`. */
  async breakDisk(mostMs: number): Promise<void> {
    const { life } = this;
    this.isBroken = true;
    diskOf(this.world).setTrouble('broken');
    const untilMs = this.world.nowMs + mostMs;
    while (!life.isOver && this.world.nowMs < untilMs) await this.world.sleep(STEP_MS);
    if (!life.isOver) this.kill();
    diskOf(this.world).setTrouble(undefined);
  }

  /** The disk is full or slow for `ms`. The server learns of a full disk at once, or by commits that fail. */
  async troubleDisk(ms: number): Promise<void> {
    const { ofFate } = this.world;
    const disk = diskOf(this.world);
    const trouble = ofFate.pick(['full', 'full', 'slow'] as const);
    this.world.count(`times of a ${trouble} disk`);
    if (trouble === 'full' && ofFate.is(BRIEF)) {
      // Other programs fill the disk for a moment: a commit fails, and the next one does not.
      disk.setTrouble(trouble);
      await this.world.sleep(ofFate.next() * MAX_BRIEF_MS);
      disk.setTrouble(undefined);
      return;
    }
    const surpriseMs = ofFate.is(0.5) ? Math.min(ms, ofFate.next() * 500) : 0;
    disk.setTrouble(trouble);
    await this.world.sleep(surpriseMs);
    disk.setTrouble(trouble, trouble === 'full');
    await this.world.sleep(ms - surpriseMs);
    disk.setTrouble(undefined);
  }

  /** Kills the server at the edge of its next commit, or after `mostMs` when it commits nothing. */
  killAtCommit(mostMs: number): Promise<void> {
    return this.#killAt(mostMs, (kill) => {
      const disk = diskOf(this.world);
      disk.atNextCommit = (life) => {
        disk.atNextCommit = undefined;
        kill(life);
      };
      return () => {
        disk.atNextCommit = undefined;
      };
    });
  }

  /** Kills the server while a commit is under way and it says something to a client, or after `mostMs`. */
  killAtReply(mostMs: number): Promise<void> {
    return this.#killAt(mostMs, (kill) => {
      // A read that shows too much is rare, so some crashes wait for the answer to the read of a session.
      const isAwaited = this.world.ofFate.is(0.5)
        ? () => true
        : (method: string, path: string) => method === 'GET' && SESSION.test(path);
      this.world.atReply = (method, path) => {
        if (!diskOf(this.world).isCommitting || !isAwaited(method, path) || this.world.ofFate.is(0.3)) return;
        this.world.atReply = undefined;
        const { life } = this.world;
        this.world.after(this.world.ofFate.next() * 0.2, () => kill(life), OUTSIDE);
      };
      return () => {
        this.world.atReply = undefined;
      };
    });
  }

  /** Kills the server at one of the next moments that `faultPoint` names, or after `mostMs`. */
  async killAtPoint(mostMs: number): Promise<void> {
    let left = 1 + this.world.ofFate.below(MAX_POINTS);
    await this.#killAt(mostMs, (kill) => {
      this.world.atFaultPoint = (point) => {
        const { life } = this.world;
        if (!this.has(life) || --left > 0) return;
        this.world.trace.add('point', point);
        kill(life);
      };
      return () => {
        this.world.atFaultPoint = undefined;
      };
    });
    await new Promise<void>((resolve) => void this.world.after(0, resolve, OUTSIDE)); // it may be called in the life that it ends
  }

  /**
   * Kills the server around one of the next moments of jobs or of hooks: at that moment, at the edge of the next commit, or a little later.
   * Kills it after `mostMs` when no such moment comes.
   */
  async killAround(kind: Moments, mostMs: number): Promise<void> {
    const { ofFate } = this.world;
    const disk = diskOf(this.world);
    let left = 1 + ofFate.below(MAX_POINTS_OF_KIND);
    await this.#killAt(mostMs, (kill) => {
      const killNow = (life: Life) => {
        this.world.count(`kills around ${kind}`);
        kill(life);
      };
      this.world.atFaultPoint = (point) => {
        const { life } = this.world;
        if (!point.startsWith(PREFIXES[kind]) || !this.has(life) || --left > 0) return;
        this.world.atFaultPoint = undefined;
        this.world.trace.add('point', point);
        this.world.count(`kills around ${point}`);
        const dice = ofFate.next();
        if (dice < 0.3) killNow(life);
        else if (dice < 0.7) disk.atNextCommit = killNow;
        else this.world.after(ofFate.next() * MAX_AFTER_MS, () => killNow(life), OUTSIDE);
      };
      return () => {
        this.world.atFaultPoint = undefined;
        disk.atNextCommit = undefined;
      };
    });
    await new Promise<void>((resolve) => void this.world.after(0, resolve, OUTSIDE)); // it may be called in the life that it ends
  }

  /** `arm` makes the world call `kill` with the life of a process, and returns the function that prevents it. */
  #killAt(mostMs: number, arm: (kill: (life: Life) => void) => () => void): Promise<void> {
    const { life: present } = this;
    return new Promise((resolve) => {
      let disarm: () => void = () => undefined;
      const kill = (life: Life) => {
        disarm();
        tooLate.isCancelled = true;
        if (!present.isOver) this.killFor(life);
        resolve();
      };
      const tooLate = this.world.after(mostMs, () => kill(this.victim()), OUTSIDE);
      disarm = arm(kill);
    });
  }

  /** Kills the server, or only the process of `life`. */
  protected killFor(_life: Life): void {
    this.kill();
  }

  /** Returns the process that is killed when nothing names one. */
  protected victim(): Life {
    return this.life;
  }

  /** The kernels that live, and whose end nobody has ordered. */
  get kernels(): readonly Child[] {
    return [...this.zygotes(), ...(this.#nodes?.zygotes ?? [])]
      .flatMap(({ children }) => [...children.values()])
      .filter(({ kind, life, isDoomed }) => kind === 'fork' && !life.isOver && !isDoomed);
  }

  /** Kills one kernel, if there is one. */
  killKernel(): void {
    const { kernels } = this;
    if (kernels.length === 0) return;
    const kernel = this.world.ofFate.pick(kernels);
    this.world.trace.add('kill', kernel.life.name);
    this.world.count('killed kernels');
    this.world.after(0, () => kernel.signal(9), kernel.life);
  }

  /** Kills the kernel host, and all kernels with it. The server starts another one. */
  killHost(): void {
    const zygote = this.zygotes().find(({ alive }) => alive);
    if (zygote === undefined) return;
    this.world.trace.add('kill', 'the kernel host');
    this.world.count('killed hosts');
    this.killedHosts++;
    this.world.after(0, () => zygote.kill(), zygote.life);
  }

  /** Returns the settings of the server. */
  protected get settings(): Readonly<Record<string, string>> {
    const { folder } = this;
    return {
      TROUPE_DATA_DIR: folder,
      TROUPE_PORT: '0',
      TROUPE_PRELOAD: 'false',
      TROUPE_WARM_UP: 'false',
      TROUPE_PACKAGES: 'false',
      TROUPE_WORKERS: '1',
      TROUPE_DISK_RESERVE_MB: '4',
      TROUPE_OPENAI_COMPATIBLE_URL: 'http://127.0.0.1:9/v1',
      TROUPE_DEFAULT_MODEL: 'openai-compatible/scripted',
      TROUPE_AGENT_TIMEOUT_S: String(this.world.nature.promptLimitS),
      TROUPE_BOOTSTRAP_TOKEN: TOKEN,
      TROUPE_BOOTSTRAP_WORKSPACE: WORKSPACE,
      TROUPE_KERNEL_CONFINEMENT: 'off',
      TROUPE_PYTHON: '/usr/bin/python3',
      TROUPE_UWEBSOCKETS: join(folder, UWS),
      ...this.#nodes?.settings,
      ...this.#settings,
    };
  }

  /** A server that was killed in the middle of a task says nothing any more. */
  protected complain(text: string): void {
    if (!this.world.life.isOver) this.world.problem(text);
  }

  /** Takes a line of the log. */
  protected writeLog(line: string): void {
    const { level, msg, time: _, ...fields } = JSON.parse(line) as Record<string, unknown>;
    // Each simulation has another folder, which must not make another trace.
    const message = String(msg).replaceAll(this.folder, 'FOLDER');
    this.world.trace.add('log', `${String(level)} ${message}`);
    const isFault = level === 'error' || level === 'fatal';
    if (!isFault || this.isBroken || this.#nodes?.expects(message) === true) return;
    if (this.expects(String(msg), fields)) return;
    const text = JSON.stringify(fields);
    // A report for developers, of data that the simulation has made: ASCII, which may be cut anywhere.
    this.complain(`the server logged: ${String(msg)} ${text.slice(0, MAX_FIELDS_CHARS)}`);
  }

  /** Returns whether the simulation has caused the fault that a line of the log reports. */
  protected expects(message: string, _fields: Readonly<Record<string, unknown>>): boolean {
    return message === HOST_LOST && this.killedHosts-- > 0;
  }
}
