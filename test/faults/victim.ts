/** One life of a server process on a data directory, from its start until it is killed or drained. */
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { setTimeout as later } from 'node:timers/promises';
import { ConnectionError } from '#src/contract/client/api-error.ts';
import { type Client, createClient } from '#src/contract/client/client.ts';
import { descendants, gone, kernelHostOf, type ProcessFact } from '#test/support/processes.ts';
import { type LogLine, OWNER, pythonOfTests, SETTINGS } from '#test/support/server-fixture.ts';

const MAIN = join(import.meta.dirname, '../../src/start/main.js');
const WATCH_MS = 15;
const ORPHANS_MS = 5_000;
/** How late the exit of the process may be reported after its connection broke. */
const END_MS = 1_000;

/** A running server that will be ended. */
export class Victim {
  readonly client: Client;
  readonly pid: number;
  /** The log so far. */
  readonly log: readonly LogLine[];
  /** Milliseconds from the spawn to the log line `ready`. */
  readonly readyMs: number;
  readonly #baseUrl: string;
  readonly #child: ReturnType<typeof spawn>;
  readonly #ended: Promise<unknown>;
  readonly #errors: readonly string[];
  /** Every descendant process that was ever seen. */
  readonly #below = new Map<string, ProcessFact>();
  readonly #watch: NodeJS.Timeout;
  readonly #life = new AbortController();

  private constructor(
    child: ReturnType<typeof spawn>,
    ended: Promise<unknown>,
    start: { baseUrl: string; readyMs: number; errors: readonly string[]; log: readonly LogLine[] },
  ) {
    this.#child = child;
    this.pid = child.pid!;
    this.log = start.log;
    this.#baseUrl = start.baseUrl;
    this.#ended = ended;
    this.#errors = start.errors;
    this.readyMs = start.readyMs;
    this.client = this.clientOf(OWNER.workspaceId);
    this.#watch = setInterval(() => this.#look(), WATCH_MS);
    child.once('exit', () => {
      clearInterval(this.#watch);
      this.#life.abort(new Error('the server has ended'));
    });
  }

  /** Starts a server. `faultPoint` is the point at which it kills itself, as `<name>:<n>`. */
  static async start(
    dataDir: string,
    faultPoint: string | undefined,
    environment: Readonly<Record<string, string>> = {},
  ): Promise<Victim> {
    const { PATH = '', HOME = '' } = process.env;
    const env = {
      ...{ PATH, HOME, ...SETTINGS, ...pythonOfTests(), TROUPE_DATA_DIR: dataDir, TROUPE_LOG_LEVEL: 'info' },
      ...environment,
      ...(faultPoint === undefined ? {} : { FAULT_POINT: faultPoint }),
    };
    const startedAt = performance.now();
    const args = ['--conditions=development', '--enable-source-maps', MAIN];
    const child = spawn(process.execPath, args, { cwd: dataDir, env, stdio: ['ignore', 'pipe', 'pipe'] });
    const ended = once(child, 'exit');
    const errors: string[] = [];
    const log: LogLine[] = [];
    const baseUrl = await new Promise<string>((resolve, reject) => {
      createInterface({ input: child.stdout }).on('line', (line) => {
        const entry = JSON.parse(line) as LogLine;
        log.push(entry);
        const { level, msg, url } = entry;
        if (msg === 'ready' && typeof url === 'string') resolve(url);
        if (level === 'error' || level === 'fatal') errors.push(line);
      });
      createInterface({ input: child.stderr }).on('line', (line) => errors.push(line));
      child.once('exit', (code, signal) =>
        reject(new Error(`no start (${code ?? signal}): ${errors.join('\n')}`)),
      );
    });
    return new Victim(child, ended, { baseUrl, readyMs: performance.now() - startedAt, errors, log });
  }

  /** Returns the owner's client for another workspace. */
  clientOf(workspaceId: string): Client {
    return createClient({ baseUrl: this.#baseUrl, accessToken: OWNER.token, workspaceId });
  }

  get isOver(): boolean {
    return this.#life.signal.aborted;
  }

  /** Resolves when the process has ended. */
  get whenOver(): Promise<unknown> {
    return this.#ended;
  }

  /** Aborts when the process has ended. */
  get signal(): AbortSignal {
    return this.#life.signal;
  }

  /** Returns whether the failure only shows that the server has ended or will end soon. */
  async explains(error: unknown): Promise<boolean> {
    if (error instanceof ConnectionError) await Promise.race([this.#ended, later(END_MS)]);
    return this.isOver;
  }

  /** The errors in its log. */
  get complaints(): readonly string[] {
    return this.#errors.filter((line) => line.startsWith('{'));
  }

  killKernelHost(): void {
    if (!this.isOver) process.kill(kernelHostOf(this.#child.pid!).zygote, 'SIGKILL');
  }

  end(signal: 'SIGKILL' | 'SIGTERM'): void {
    this.#look();
    this.#child.kill(signal);
  }

  /** Resolves when the process and all its descendants have ended. Rejects when one outlives it. */
  async over(): Promise<void> {
    await this.#ended;
    await gone([...this.#below.values()], ORPHANS_MS);
  }

  #look(): void {
    if (this.isOver) return;
    for (const fact of descendants(this.#child.pid!)) this.#below.set(`${fact.pid} ${fact.startedAt}`, fact);
  }
}
