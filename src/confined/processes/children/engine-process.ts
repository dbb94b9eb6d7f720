/**
 * One embedded database in a child of the kernel host (src/confined/python/engines/engine.py). The
 * child is confined to the files of one workspace. It gets one request at a time, and ends when it
 * is disposed of, however busy it is.
 */
import { parseBoundedJson } from '../bounded-json.ts';
import type { ChildStarter, ConfinedChild } from '../confined-child.ts';
import { encodeFrame } from '../frame-decoder.ts';
import { bareConfinement } from '../launch-order.ts';
import type { KernelLimits } from '../limits.ts';
import { workspaceCharge } from '../workspace-charge.ts';

/** The kind of database that an engine serves. */
export type EngineKind = 'duckdb' | 'sqlite' | 'files';

/** `probe` leaves no trace on disk; only `write` changes files. No mode creates a file that does not exist. */
export type EngineMode = 'probe' | 'read' | 'write';

/** Which database to serve. */
export interface EngineLaunch {
  readonly kind: EngineKind;
  /** The folder of the workspace's files. */
  readonly filesDirectory: string;
  /** The path of the database in that folder. */
  readonly path: string;
  readonly mode: EngineMode;
  /** The kernel towards whose memory limit the engine counts. Without one, it counts towards its workspace. */
  readonly memoryShare?: string;
}

const REQUEST = 1;
const MIB = 2 ** 20;
/**
 * The largest answer: a row of 16 MiB with every byte written as \u001f, and the other rows of its
 * portion.
 */
const FRAME_LIMIT_BYTES = 6 * (16 * MIB + MIB);
/** A folder of data files may have up to 500 files, each open twice while it is read. */
const OPEN_FILES = 2048;
const START_TIMEOUT_MS = 30_000;
const OPENING_BRACE = 0x7b;

interface Pending {
  readonly resolve: (answer: unknown) => void;
  readonly reject: (error: Error) => void;
}

export class EngineProcess implements Disposable {
  readonly #child: ConfinedChild;
  readonly #ready: Promise<unknown>;
  #pending: Pending | undefined;
  #ended = false;
  #pid: number | undefined;

  /**
   * Starts the engine at once. `limits` are the limits of kernels. An engine uses those for files
   * and processor time.
   */
  constructor(launch: EngineLaunch, limits: KernelLimits, host: ChildStarter) {
    const end = () => this[Symbol.dispose]();
    this.#ready = this.#awaited();
    this.#ready.catch(() => {}); // `ask` rejects with it
    const timeout = setTimeout(end, START_TIMEOUT_MS).unref();
    this.#ready.finally(() => clearTimeout(timeout)).catch(() => {}); // the same rejection
    const { kind: engine, filesDirectory: folder, path, mode } = launch;
    this.#child = host.startChild(
      (confinement) => ({
        order: {
          op: 'engine',
          ...workspaceCharge(folder, limits),
          ...(launch.memoryShare === undefined ? {} : { share: launch.memoryShare }),
          limits: {
            NOFILE: OPEN_FILES,
            ...(limits.fileBytes === null ? {} : { FSIZE: limits.fileBytes }),
          },
          confine: bareConfinement(confinement),
        },
        launch: { engine, folder, path, mode },
      }),
      {
        forked: (pid) => {
          this.#pid = pid;
        },
        received: (values) => {
          for (const value of values) this.#take(value);
        },
        ended: end,
      },
      { parse: answerOf, limitBytes: FRAME_LIMIT_BYTES },
    );
  }

  /** Undefined until the process was forked. */
  get pid(): number | undefined {
    return this.#pid;
  }

  get ended(): boolean {
    return this.#ended;
  }

  /**
   * Resolves with the answer: the members of a message, or the bytes of rows (engines/rows.py). Rejects when the process
   * ends before that, and when the last request is still unanswered.
   */
  async ask(request: Readonly<Record<string, unknown>>): Promise<unknown> {
    await this.#ready;
    const answer = this.#awaited();
    if (!this.#ended) this.#child.sender.send([encodeFrame(REQUEST, request)]);
    return answer;
  }

  /** Kills the process. */
  [Symbol.dispose](): void {
    if (this.#ended) return;
    this.#ended = true;
    this.#child[Symbol.dispose]();
    this.#pending?.reject(new Error('The engine has ended.'));
    this.#pending = undefined;
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

/** Returns the members of a message, or a copy of the bytes when they are rows. */
function answerOf(body: Buffer): unknown {
  return body[0] === OPENING_BRACE ? parseBoundedJson(body) : Buffer.from(body);
}
