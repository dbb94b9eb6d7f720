/**
 * One embedded database in a child of the kernel host (src/kernel/host/engine.py): confined, with the files of one
 * workspace and nothing else. It is asked one thing at a time, and ends when it is disposed of, however busy it is.
 */
import { randomBytes } from 'node:crypto';
import { constants } from 'node:os';
import { parseBoundedJson } from './bounded-json.ts';
import { encodeFrame } from './frame-decoder.ts';
import { KernelSocket } from './kernel-socket.ts';
import type { KernelLimits } from './limits.ts';
import type { ZygoteProcess } from './zygote-process.ts';

/** Which database to serve. */
export interface EngineLaunch {
  readonly kind: 'duckdb' | 'sqlite' | 'files';
  /** The folder of the workspace's files. */
  readonly filesDirectory: string;
  /** Of the database, in that folder. */
  readonly path: string;
  /** `probe` leaves no trace on disk; only `write` changes files. None makes one that is not there. */
  readonly mode: 'probe' | 'read' | 'write';
}

export interface EnginePort {
  readonly zygote: () => Promise<ZygoteProcess>;
  readonly newSocketPath: () => string;
  /** As the kernel host reads it. */
  readonly confinement: Readonly<Record<string, unknown>> | null;
  /** Of kernels; an engine shares those for files and processor time. */
  readonly limits: KernelLimits;
}

const REQUEST = 1;
const MIB = 2 ** 20;
/** A row of 16 MiB, every byte of it written as \u001f, and the rows of the same portion. */
const FRAME_LIMIT_BYTES = 6 * (16 * MIB + MIB);
const MEMORY_BYTES = 3 * 1024 * MIB;
/** A folder of data files has up to 500, each open twice while it is read. */
const OPEN_FILES = 2048;
const START_TIMEOUT_MS = 30_000;
const OPENING_BRACE = 0x7b;

interface Pending {
  readonly resolve: (answer: unknown) => void;
  readonly reject: (error: Error) => void;
}

export class EngineProcess implements Disposable {
  readonly #id = randomBytes(8).toString('hex');
  readonly #socket: KernelSocket;
  readonly #ready: Promise<unknown>;
  #pending: Pending | undefined;
  #zygote: ZygoteProcess | undefined;
  #ended = false;
  #pid: number | undefined;

  /** Starts at once. */
  constructor(launch: EngineLaunch, port: EnginePort) {
    const token = randomBytes(32).toString('hex');
    const end = () => this[Symbol.dispose]();
    this.#socket = new KernelSocket(
      token,
      {
        accepted: () => {},
        received: (values) => {
          for (const value of values) this.#take(value);
        },
        broken: end,
        failed: end,
        closed: end,
      },
      { parse: answerOf, limitBytes: FRAME_LIMIT_BYTES },
    );
    this.#ready = this.#awaited();
    this.#ready.catch(() => {}); // told to whoever asks
    this.#start(launch, port, token).catch(end);
    const timeout = setTimeout(end, START_TIMEOUT_MS).unref();
    this.#ready.finally(() => clearTimeout(timeout)).catch(() => {});
  }

  /** Undefined until it was forked. */
  get pid(): number | undefined {
    return this.#pid;
  }

  get ended(): boolean {
    return this.#ended;
  }

  /**
   * Resolves with the answer: the members of a message, or the bytes of rows (engine_rows.py). Rejects when the process
   * ends before that, and when it has not answered the last request yet.
   */
  async ask(request: Readonly<Record<string, unknown>>): Promise<unknown> {
    await this.#ready;
    const answer = this.#awaited();
    if (!this.#ended) this.#socket.send(encodeFrame(REQUEST, request));
    return answer;
  }

  /** Kills the process. */
  [Symbol.dispose](): void {
    if (this.#ended) return;
    this.#ended = true;
    this.#socket.destroy();
    this.#zygote?.signal(this.#id, constants.signals.SIGKILL);
    this.#pending?.reject(new Error('The engine has ended.'));
    this.#pending = undefined;
  }

  async #start(launch: EngineLaunch, port: EnginePort, token: string): Promise<void> {
    const zygote = await port.zygote();
    if (this.#ended) return; // and nothing must listen any more
    const socketPath = port.newSocketPath();
    await this.#socket.listen(socketPath);
    if (this.#ended) return this.#socket.destroy();
    this.#zygote = zygote;
    const { kind: engine, filesDirectory: folder, path, mode } = launch;
    const { fileBytes, nice } = port.limits;
    const end = () => this[Symbol.dispose]();
    zygote.order(
      this.#id,
      {
        op: 'engine',
        engine,
        folder,
        path,
        mode,
        socket_path: socketPath,
        token,
        memory: MEMORY_BYTES,
        limits: { NOFILE: OPEN_FILES, ...(fileBytes === null ? {} : { FSIZE: fileBytes }) },
        nice,
        confine: port.confinement,
      },
      {
        forked: (pid) => {
          this.#pid = pid;
        },
        ended: end,
        refused: end,
        lost: end,
      },
    );
  }

  #take(answer: unknown): void {
    const pending = this.#pending;
    this.#pending = undefined;
    if (pending === undefined) this[Symbol.dispose]();
    else pending.resolve(answer);
  }

  #awaited(): Promise<unknown> {
    return new Promise((resolve, reject) => {
      if (this.#ended || this.#pending !== undefined) reject(new Error('The engine cannot be asked.'));
      else this.#pending = { resolve, reject };
    });
  }
}

/** The members of a message, or a copy of the bytes when it is none. */
function answerOf(body: Buffer): unknown {
  return body[0] === OPENING_BRACE ? parseBoundedJson(body) : Buffer.from(body);
}
