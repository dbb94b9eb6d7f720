/**
 * One model file that this machine serves itself: a child of the kernel host that becomes llama.cpp
 * (src/confined/python/local_model.py), started when it is first asked. It listens on a unix socket in a folder that only the
 * server can enter, reads the model file and its own Python environment, and has no network. Its key is new for each start
 * and is given to it over its connection. When the child ends, the next request starts another. Disposing ends it.
 */
import { randomBytes } from 'node:crypto';
import { existsSync, mkdirSync, readdirSync, realpathSync, rmSync } from 'node:fs';
import { availableParallelism } from 'node:os';
import { basename, dirname, join } from 'node:path';
import type { ChildEnd, ChildStarter, ConfinedChild } from '../confined-child.ts';
import { encodeFrame } from '../frame-decoder.ts';
import type { KernelLog } from '../host/zygote-process.ts';
import { asRecord, asText } from '../json-shape.ts';
import { bareConfinement, type ChildRequest, type Confinement } from '../launch-order.ts';

export interface LocalModelOptions {
  readonly host: ChildStarter;
  /** The GGUF file. */
  readonly path: string;
  /** The interpreter that has llama.cpp, an absolute path; when absent, the interpreter from `troupe models add-local`. */
  readonly python?: string;
  readonly script: string;
  readonly contextTokens: number;
  /** The memory limit of the process. Null: no limit. */
  readonly memoryBytes: number | null;
  readonly log: Pick<KernelLog, 'info' | 'warn'>;
}

/** The address of a loaded model. */
export interface LocalModelAddress {
  readonly apiKey: string;
  readonly socketPath: string;
}

const START_TIMEOUT_MS = 120_000;
const KEY = 1;
/** llama.cpp treats an address with this ending as the path of a unix socket. */
const SOCKET = 'm.sock';
/** llama.cpp starts some threads for each processor, and its web server starts as many. */
const MAX_THREADS = 64 + 4 * availableParallelism();
const ENVIRONMENT = { PATH: '/usr/local/bin:/usr/bin:/bin', HOME: '/tmp', LANG: 'C.UTF-8' };

export class LocalModelProcess implements Disposable {
  /** The name of the model, which follows `local/` in its id. */
  readonly name: string;
  readonly #options: LocalModelOptions;
  readonly #python: string;
  #address: Promise<LocalModelAddress> | undefined;
  #child: ConfinedChild | undefined;
  #isDisposed = false;

  constructor(options: LocalModelOptions) {
    this.#options = options;
    const installation = join(dirname(options.script), '..', '..', '..');
    this.#python = options.python ?? join(installation, '.venv-local-model', 'bin', 'python');
    this.name = basename(options.path).replace(/\.gguf$/i, '');
  }

  /** Returns which part is missing and how to get it; undefined when the model can be started. */
  lacks(): string | undefined {
    const { path } = this.#options;
    if (!existsSync(path)) return `there is no file ${path}.`;
    return existsSync(this.#python) ? undefined : 'run `troupe models add-local` once.';
  }

  /**
   * Resolves once the model is loaded. Rejects with one line that gives the reason when it cannot
   * be loaded; the next call tries again.
   */
  start(): Promise<LocalModelAddress> {
    if (this.#address === undefined) {
      const attempt = this.#startChild();
      this.#address = attempt;
      attempt.catch(() => {
        if (this.#address === attempt) this.#address = undefined;
      });
    }
    return this.#address;
  }

  async #startChild(): Promise<LocalModelAddress> {
    if (this.#isDisposed) throw new Error('The server is stopping.');
    const apiKey = randomBytes(32).toString('hex');
    const folder = this.#options.host.newSocketPath();
    mkdirSync(folder, { mode: 0o700 });
    const socketPath = join(folder, SOCKET);
    await this.#load(apiKey, folder, socketPath);
    this.#options.log.info({ model: this.name }, 'the local model is loaded');
    return { apiKey, socketPath };
  }

  /** Starts the child. Resolves when the model is loaded, rejects when the child ends before that. */
  #load(apiKey: string, folder: string, socketPath: string): Promise<void> {
    const { host } = this.#options;
    return new Promise((resolve, reject) => {
      let why: string | undefined;
      const timeout = setTimeout(() => {
        why = `it was not loaded within ${START_TIMEOUT_MS / 1000} s`;
        child.kill();
      }, START_TIMEOUT_MS);
      const child: ConfinedChild = host.startChild(
        (confinement) => this.#request(confinement, folder, socketPath),
        {
          received: (values) => {
            for (const value of values) {
              const message = asRecord(value, 'the message');
              if (message.op === 'program-started') child.sender.send([encodeFrame(KEY, { key: apiKey })]);
              else if (message.op === 'model-failed') {
                why = asText(message.message, 'message');
                child.kill();
              } else if (message.op === 'model-ready') {
                clearTimeout(timeout);
                resolve();
              }
            }
          },
          ended: (end) => {
            clearTimeout(timeout);
            this.#onEnded(child, folder, end);
            reject(new Error(why ?? describeEnd(end)));
          },
        },
      );
      this.#child = child;
    });
  }

  #request(confinement: Confinement | null, folder: string, socketPath: string): ChildRequest {
    const { path, script, contextTokens, memoryBytes } = this.#options;
    const { file, needed } = modelFiles(path);
    const read = [...needed, dirname(script), ...environmentOf(this.#python)];
    return {
      order: { op: 'program', memory: memoryBytes, confine: bareConfinement(confinement, MAX_THREADS) },
      launch: {
        // -E and -s leave out the user's own settings and packages. -I would also leave out the
        // folder of the script.
        arguments: [this.#python, '-E', '-s', script, file, socketPath, String(contextTokens)],
        env: ENVIRONMENT,
        reach: { read, sockets: [folder] },
      },
    };
  }

  #onEnded(child: ConfinedChild, folder: string, end: ChildEnd): void {
    rmSync(folder, { recursive: true, force: true });
    if (this.#child === child) {
      this.#child = undefined;
      this.#address = undefined;
    }
    const how = end.kind === 'ended' ? end.process : end.kind;
    this.#options.log.info({ model: this.name, end: how }, 'the local model has ended');
  }

  [Symbol.dispose](): void {
    this.#isDisposed = true;
    this.#child?.kill();
  }
}

/** Returns the files of a model, which may be split into `…-00001-of-00003.gguf` and so on, next to the first. */
function modelFiles(path: string): { readonly file: string; readonly needed: readonly string[] } {
  const [, stem] = /^(.*-)\d{5}-of-\d{5}\.gguf$/i.exec(basename(path)) ?? [];
  if (stem === undefined) {
    const file = realpathSync(path);
    return { file, needed: [file] };
  }
  const folder = realpathSync(dirname(path));
  const parts = readdirSync(folder).filter((name) => name.startsWith(stem));
  // A cache of downloads contains only links to the files.
  return {
    file: join(folder, basename(path)),
    needed: [folder, ...parts.map((name) => realpathSync(join(folder, name)))],
  };
}

/**
 * Returns the directories of an interpreter and its packages: its environment, and the installation
 * from which the environment was made.
 */
function environmentOf(python: string): string[] {
  const prefixes = [python, realpathSync(python)].map((program) => dirname(dirname(program)));
  return prefixes.filter((prefix) => prefix !== '/');
}

function describeEnd(end: ChildEnd): string {
  switch (end.kind) {
    case 'ended':
      return `it ended with ${end.process?.signal == null ? `exit code ${end.process?.code ?? 'unknown'}` : `signal ${end.process.signal}`}`;
    case 'lost':
      return 'the kernel host ended';
    case 'deaf':
      return 'it did not read what it was sent';
    case 'failed':
      return 'it sent a message that the server could not read';
    case 'broken':
      return `it sent ${end.reason}`;
    default:
      return end.reason;
  }
}
