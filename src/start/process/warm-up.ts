/**
 * Warms the process up while nobody uses it: an app of its own, with an empty store in a folder that is removed afterwards, answers
 * requests at a socket that only this user can reach, and a kernel carries out its runs.
 *
 * V8 optimizes a function only after it was called many times, so the first users of a server would wait for that. The compiled code
 * that a start loads (src/setup/code-cache.mjs) is not optimized, and cannot be.
 *
 * The app has no part in the store, the metrics, the audit, the log, the limits and the streams of the server. It shares the kernel
 * host, which does not count its kernel. It gives way: no step begins while the server has requests or runs, or had any just before.
 */
import { mkdirSync } from 'node:fs';
import { rm } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { setTimeout as pause } from 'node:timers/promises';
import { loadConfig } from '#src/base/config/config.ts';
import { openLog } from '#src/base/log/log.ts';
import { ServerMetrics } from '#src/base/metrics/server-metrics.ts';
import { PlainHost } from '#src/confined/processes/host/plain-host.ts';
import { newTokenSecret } from '#src/people/auth/token-secret.ts';
import { DataDirectory } from '#storage/disk/data-directory.ts';
import type { App, AppOptions } from '../app/app-interface.ts';
import { hostMaker } from '../app/prerequisites.ts';
import { SocketClient } from './socket-client.ts';

export interface WarmUpOptions extends Pick<AppOptions, 'config' | 'log' | 'prerequisites'> {
  /** The app that serves. */
  readonly app: Pick<App, 'load' | 'requestCount'>;
  readonly createApp: (options: AppOptions) => Promise<App>;
  /** The most time of all steps together, in milliseconds; a minute when absent. */
  readonly limitMs?: number;
}

/** How long nobody must have used the server before a step begins. */
const QUIET_MS = 100;
/** A warm-up that had to give way for so long ends, because the users have warmed the server up. */
const MAX_MS = 15_000;
/** After so long a warm-up ends even in the middle of a step, for example because its kernel does not respond. */
const LIMIT_MS = 60_000;
/** More runs took more processor time and memory, and did not make the first runs of users faster. */
const RUNS = 40;
const CANCELS = 10;
/** The steps of a warm-up that was not ended early. */
export const ALL_STEPS = RUNS + CANCELS;
const WORKSPACE = 'ws_warmup';
const LOOP = 'print("it has begun")\nwhile True:\n    pass';

export class WarmUp {
  readonly #options: WarmUpOptions;
  readonly #ending = new AbortController();
  readonly #deadline = performance.now() + MAX_MS;
  readonly #ended: Promise<void>;
  /** The number of requests that the server had had at the last look; -1 before the first look. */
  #seenRequests = -1;
  #steps = 0;

  /** Begins at once; kernels can be started. Its failures only mean that the server is slower at first. */
  constructor(options: WarmUpOptions) {
    this.#options = options;
    const startedAt = performance.now();
    const limit = setTimeout(() => this.#ending.abort(), options.limitMs ?? LIMIT_MS).unref();
    this.#ended = this.#perform()
      .catch((error: unknown) => options.log.debug({ err: error }, 'the warm-up has failed'))
      .then(() => {
        clearTimeout(limit);
        const ms = Math.round(performance.now() - startedAt);
        options.log.debug({ steps: this.#steps, ms }, 'the warm-up has ended');
      });
  }

  /** How many runs and cancels have ended. */
  get steps(): number {
    return this.#steps;
  }

  /** Resolves when the warm-up has ended and has released everything. */
  get ended(): Promise<void> {
    return this.#ended;
  }

  /** Ends the warm-up early. Resolves as `ended` does. */
  end(): Promise<void> {
    this.#ending.abort();
    return this.#ended;
  }

  async #perform(): Promise<void> {
    if (!(await this.#mayContinue())) return;
    const { directory } = this.#options.prerequisites;
    const folder = join(directory.runPath, `warm-up-${process.pid}`);
    const socketPath = this.#options.prerequisites.host.newSocketPath();
    mkdirSync(folder, { mode: 0o700 });
    try {
      await this.#exercise(folder, socketPath);
    } finally {
      await Promise.all([folder, socketPath].map((path) => rm(path, { recursive: true, force: true })));
    }
  }

  async #exercise(folder: string, socketPath: string): Promise<void> {
    const token = newTokenSecret();
    const app = await this.#openApp(folder, socketPath, token.reveal());
    const client = new SocketClient(socketPath, {
      authorization: `Bearer ${token.reveal()}`,
      'service-workspace-id': WORKSPACE,
    });
    const leave = () => client[Symbol.dispose]();
    this.#ending.signal.addEventListener('abort', leave);
    try {
      this.#ending.signal.throwIfAborted(); // the warm-up may have been ended while the app was opened
      await this.#work(client);
    } finally {
      leave();
      await app[Symbol.asyncDispose]();
    }
  }

  async #openApp(folder: string, socketPath: string, token: string): Promise<App> {
    const { config, prerequisites, createApp } = this.#options;
    const { config: defaults } = loadConfig(
      {
        TROUPE_DATA_DIR: folder,
        TROUPE_WORKERS: '1',
        TROUPE_PACKAGES: 'false',
        TROUPE_DISK_RESERVE_MB: '4',
        TROUPE_BOOTSTRAP_TOKEN: token,
        TROUPE_BOOTSTRAP_WORKSPACE: WORKSPACE,
      },
      { cwd: folder },
    );
    const log = openLog({ level: 'silent', destination: { write() {} } });
    const directory = DataDirectory.inherited(folder);
    mkdirSync(directory.storePath, { mode: 0o700 });
    // The same policy as that of the server's kernels, so that the spare process that is made after this kernel fits the next one.
    const runDir = dirname(socketPath);
    const makeHost = hostMaker({ config, log, directory: prerequisites.directory, runDir });
    const host = makeHost(false, { startZygote: prerequisites.host.share });
    const { confinement } = await host.start();
    return createApp({
      config: defaults,
      log,
      prerequisites: {
        metrics: new ServerMetrics(),
        directory,
        host,
        plainHost: new PlainHost(() => makeHost(false)), // never started: there are no packages
        kernelsReady: Promise.resolve({ confinement }),
        [Symbol.asyncDispose]: () => host[Symbol.asyncDispose](),
      },
      onFatal: () => this.#ending.abort(),
      socketPath,
    });
  }

  /** Opens a notebook, runs a cell again and again, and cancels a loop a few times. */
  async #work(client: SocketClient): Promise<void> {
    const cells = [
      { cell_id: 'value', code: '1+1' },
      { cell_id: 'loop', code: LOOP },
    ];
    const { id } = await client.call('POST', '/api/v3/notebooks', { serialization: { cells } });
    const { environmentId } = await client.call('POST', '/api/v3/execution-environments', {});
    await client.call('POST', '/api/v3/notebook-sessions', { notebookId: id, environmentId });
    const session = `/api/v3/notebook-sessions/${id}`;
    const events = await client.follow(`${session}/events`);
    await events.until('"status":"ready"');
    const run = (cellId: string) =>
      client.call('POST', `${session}/executions`, { type: 'cells', cells: [{ cellId }] });
    for (let i = 0; i < RUNS && (await this.#mayContinue()); i++) {
      const ended = events.until('"status":"completed"');
      await run('value');
      await ended;
      this.#steps++;
    }
    for (let i = 0; i < CANCELS && (await this.#mayContinue()); i++) {
      const begun = events.until('it has begun');
      const { runId } = await run('loop');
      await begun;
      const ended = events.until('"status":"ready"');
      await client.call('POST', `/api/v3/runs/${runId}/cancel`, {});
      await ended;
      this.#steps++;
    }
  }

  /** Waits until nobody uses the server. Resolves with whether the warm-up continues. */
  async #mayContinue(): Promise<boolean> {
    const { app } = this.#options;
    const { signal } = this.#ending;
    while (!signal.aborted && (app.requestCount() !== this.#seenRequests || app.load().runs > 0)) {
      if (performance.now() > this.#deadline) return false;
      this.#seenRequests = app.requestCount();
      await pause(QUIET_MS, undefined, { signal, ref: false }).catch(() => undefined);
    }
    return !signal.aborted;
  }
}

/** The part of an app that `drain` uses. */
type Drained = Pick<App, 'load' | 'stored'> & AsyncDisposable;

/**
 * Begins a warm-up when kernels can be started, if the settings want it. Returns the app, which ends the warm-up before it is closed. With
 * kernel nodes there is none, because its kernel would take a place on a node.
 */
export function warmedUp(app: App, options: Omit<WarmUpOptions, 'app'>): Drained {
  const { config } = options;
  let warmUp: WarmUp | undefined;
  let isClosing = false;
  if (config.warmUp && config.kernelNodes === 'none')
    app.kernelsReady.then(
      () => {
        if (!isClosing) warmUp = new WarmUp({ ...options, app });
      },
      () => undefined, // the caller reports the error
    );
  return {
    load: app.load,
    stored: app.stored,
    async [Symbol.asyncDispose]() {
      isClosing = true;
      await warmUp?.end();
      await app[Symbol.asyncDispose]();
    },
  };
}
