/**
 * One model file that this machine serves itself: a child process (src/kernel/host/local_model.py) started when it is first
 * asked, on a unix socket in a folder that only the server can enter, with a key that is new for each start. When the
 * child ends, the next request starts another. Disposing ends it.
 */
import { type ChildProcessByStdio, spawn } from 'node:child_process';
import { randomBytes } from 'node:crypto';
import { existsSync, rmSync } from 'node:fs';
import { basename, dirname, join } from 'node:path';
import { createInterface } from 'node:readline';
import type { Readable, Writable } from 'node:stream';
import type { Dispatcher } from 'undici';
import type { KernelLog } from './zygote-process.ts';

export interface LocalModelOptions {
  /** The GGUF file. */
  readonly path: string;
  /** The interpreter that has llama.cpp; what `troupe models add-local` has made when absent. */
  readonly python?: string;
  readonly script: string;
  /** An existing directory of mode 0700. */
  readonly runDir: string;
  readonly contextTokens: number;
  readonly log: Pick<KernelLog, 'info' | 'warn'>;
  /** Of the server; only what is harmless of it reaches the child. */
  readonly environment: Readonly<Record<string, string | undefined>>;
  readonly startTimeoutMs?: number;
}

export interface LocalModelConnection {
  readonly apiKey: string;
  /** Its connections go to the model, whatever host they name. */
  readonly dispatcher: Dispatcher;
}

type Child = ChildProcessByStdio<Writable, Readable, Readable>;

const START_TIMEOUT_MS = 120_000;

export class LocalModelProcess implements Disposable {
  /** Its name behind `local/`. */
  readonly name: string;
  readonly #options: LocalModelOptions;
  readonly #python: string;
  #connection: Promise<LocalModelConnection> | undefined;
  #child: Child | undefined;
  #isDisposed = false;

  constructor(options: LocalModelOptions) {
    this.#options = options;
    const installation = join(dirname(options.script), '..', '..', '..');
    this.#python = options.python ?? join(installation, '.venv-local-model', 'bin', 'python');
    this.name = basename(options.path).replace(/\.gguf$/i, '');
  }

  /** What is missing, and how to get it; undefined when it can be started. */
  lacks(): string | undefined {
    const { path } = this.#options;
    if (!existsSync(path)) return `there is no file ${path}.`;
    return existsSync(this.#python) ? undefined : 'run `troupe models add-local` once.';
  }

  /** Resolves once the model is loaded. Rejects with one line that says why it is not; the next call tries again. */
  connect(): Promise<LocalModelConnection> {
    if (this.#connection === undefined) {
      const attempt = this.#start();
      this.#connection = attempt;
      attempt.catch(() => {
        if (this.#connection === attempt) this.#connection = undefined;
      });
    }
    return this.#connection;
  }

  async #start(): Promise<LocalModelConnection> {
    if (this.#isDisposed) throw new Error('The server is stopping.');
    const { path, script, runDir, contextTokens, environment, log } = this.#options;
    const { startTimeoutMs = START_TIMEOUT_MS } = this.#options;
    const apiKey = randomBytes(32).toString('hex');
    const socketPath = join(runDir, `model-${randomBytes(4).toString('hex')}.sock`);
    const { PATH = '', HOME = '', LANG = 'C.UTF-8' } = environment;
    // A session of its own: Ctrl-C in a terminal is for the server, which then ends the child in order.
    const child: Child = spawn(this.#python, [script, path, socketPath, String(contextTokens)], {
      env: { PATH, HOME, LANG, LOCAL_MODEL_KEY: apiKey },
      stdio: ['pipe', 'pipe', 'pipe'],
      detached: true,
    });
    this.#child = child;
    child.stdin.on('error', () => {}); // `close` says all there is to say
    let lastWords = '';
    createInterface({ input: child.stderr }).on('line', (line) => {
      lastWords = line.trim() || lastWords;
    });
    child.once('close', (code, signal) => {
      rmSync(socketPath, { force: true });
      if (this.#child === child) {
        this.#child = undefined;
        this.#connection = undefined;
      }
      log.info({ model: this.name, code, signal }, 'the local model has ended');
    });
    await ready(child, startTimeoutMs, () => lastWords);
    log.info({ model: this.name }, 'the local model is loaded');
    const { Agent } = await import('undici');
    // The time limits are those of whoever asks.
    const dispatcher = new Agent({ connect: { socketPath }, bodyTimeout: 0, headersTimeout: 0 });
    return { apiKey, dispatcher };
  }

  [Symbol.dispose](): void {
    this.#isDisposed = true;
    this.#child?.stdin.end();
    this.#child?.kill('SIGTERM');
  }
}

/** Resolves with the line that says that it listens; the child is killed when none comes. */
function ready(child: Child, timeoutMs: number, lastWords: () => string): Promise<void> {
  return new Promise((resolve, reject) => {
    const fail = (why: string) => {
      clearTimeout(timer);
      child.kill('SIGKILL');
      reject(new Error(why));
    };
    const timer = setTimeout(() => fail(`it was not loaded within ${timeoutMs / 1000} s`), timeoutMs);
    child.once('error', (error) => fail(error.message));
    child.once('close', (code, signal) => fail(lastWords() || `it ended with ${signal ?? code}`));
    createInterface({ input: child.stdout }).once('line', () => {
      clearTimeout(timer);
      resolve();
    });
  });
}
