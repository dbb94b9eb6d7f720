import { randomBytes } from 'node:crypto';
import { constants } from 'node:os';
import type { Failure } from '#src/core/errors.ts';
import { encodeFrame } from './frame-decoder.ts';
import { asList, asRecord, asText, isRecord } from './json-shape.ts';
import { KernelSocket } from './kernel-socket.ts';
import type { CellOutput } from './messages.ts';
import type { ZygoteProcess } from './zygote-process.ts';

/** Reads a notebook file of this format into our serialization, or writes one. */
export type ConvertRequest =
  | { readonly direction: 'read'; readonly format: 'py' | 'ipynb' | 'md'; readonly content: string }
  | {
      readonly direction: 'write';
      readonly format: 'py' | 'ipynb' | 'md' | 'html';
      readonly serialization: Readonly<Record<string, unknown>>;
      /** Saved outputs by cell id, for formats that can hold them. */
      readonly results?: Readonly<
        Record<string, { readonly output?: CellOutput | null; readonly console?: readonly CellOutput[] }>
      >;
      readonly title?: string;
      /** Where an HTML page finds marimo's front end. */
      readonly assetUrl?: string;
    };

/** A notebook as it was read from a file. */
export interface ConvertedNotebook {
  readonly version: string;
  readonly app: { readonly options: Readonly<Record<string, unknown>> };
  readonly cells: readonly {
    readonly cell_id: string;
    readonly code: string;
    readonly options: Readonly<Record<string, unknown>>;
  }[];
}

/**
 * `serialization` after a read, `content` after a write. The code of a failure: `unreadable_notebook` and
 * `unwritable_notebook` lie in what was given, `kernel_host_failed` in a host that is not there, and
 * `conversion_failed` in a converter that did not survive it or took too long.
 */
export type ConvertResult =
  | { readonly ok: true; readonly serialization: ConvertedNotebook; readonly content: null }
  | { readonly ok: true; readonly serialization: null; readonly content: string }
  | { readonly ok: false; readonly error: Failure };

export interface ConvertPort {
  readonly zygote: () => Promise<ZygoteProcess>;
  readonly newSocketPath: () => string;
  /** As the kernel host reads it. */
  readonly confinement: Readonly<Record<string, unknown>> | null;
}

const INPUT = 1;
const NO_ANSWER = 'The converter ended without an answer.';
const LAST_WORDS_MS = 250;
const TIMEOUT_MS = 30_000;

/** One conversion in a child process that parses and never runs the notebook. Resolves always; the child is gone then. */
export async function convertInChild(request: ConvertRequest, port: ConvertPort): Promise<ConvertResult> {
  const id = randomBytes(8).toString('hex');
  const token = randomBytes(32).toString('hex');
  const { direction, format, ...input } = request;
  return new Promise((resolve) => {
    const timers: NodeJS.Timeout[] = [];
    let zygote: ZygoteProcess | null = null;
    let isSettled = false;
    const settle = (result: ConvertResult) => {
      if (isSettled) return;
      isSettled = true;
      for (const timer of timers) clearTimeout(timer);
      socket.destroy();
      zygote?.signal(id, constants.signals.SIGKILL);
      resolve(result);
    };
    const settleAfter = (delayMs: number, result: ConvertResult) => {
      if (!isSettled) timers.push(setTimeout(() => settle(result), delayMs));
    };
    const socket = new KernelSocket(token, {
      accepted: () => {},
      received: (values) => {
        for (const value of values) {
          const message = asRecord(value, 'the message');
          if (message.op === 'convert-ready') socket.send(encodeFrame(INPUT, input));
          else if (message.op === 'convert-done') settle(decodeResult(direction, message));
        }
      },
      broken: (reason) => settle(failed(`The converter sent ${reason}.`)),
      failed: () => settle(failed('The converter sent something that the server could not take.')),
      // Why it ended without one, its host says next.
      closed: () => settleAfter(LAST_WORDS_MS, failed(NO_ANSWER)),
    });
    const start = async () => {
      const host = await port.zygote();
      const socketPath = port.newSocketPath();
      await socket.listen(socketPath);
      if (isSettled) return;
      zygote = host;
      host.order(
        id,
        { op: 'convert', direction, format, socket_path: socketPath, token, confine: port.confinement },
        {
          // Its answer may still be in the socket, whose end is the one that counts.
          ended: () => settleAfter(LAST_WORDS_MS, failed(NO_ANSWER)),
          refused: (reason) => settle(hostFailed(reason)),
          lost: () => settle(hostFailed('The kernel host ended during the conversion.')),
        },
      );
    };
    settleAfter(TIMEOUT_MS, failed('The conversion took too long.'));
    start().catch((error: unknown) =>
      settle(hostFailed(error instanceof Error ? error.message : String(error))),
    );
  });
}

function decodeResult(
  direction: ConvertRequest['direction'],
  message: Readonly<Record<string, unknown>>,
): ConvertResult {
  if (message.ok !== true) {
    const error = isRecord(message.error) ? message.error : {};
    return {
      ok: false,
      error: { code: asText(error.code, 'code'), message: asText(error.message, 'message') },
    };
  }
  return direction === 'read'
    ? { ok: true, serialization: decodeNotebook(message.serialization), content: null }
    : { ok: true, serialization: null, content: asText(message.content, 'content') };
}

function decodeNotebook(value: unknown): ConvertedNotebook {
  const notebook = asRecord(value, 'serialization');
  const app = asRecord(notebook.app, 'app');
  return {
    version: asText(notebook.version, 'version'),
    app: { options: asRecord(app.options, 'app.options') },
    cells: asList(notebook.cells, decodeCell, 'cells'),
  };
}

function decodeCell(value: unknown): ConvertedNotebook['cells'][number] {
  const cell = asRecord(value, 'a cell');
  return {
    cell_id: asText(cell.cell_id, 'cell_id'),
    code: asText(cell.code, 'code'),
    options: asRecord(cell.options, 'options'),
  };
}

function failed(message: string): ConvertResult {
  return { ok: false, error: { code: 'conversion_failed', message } };
}

function hostFailed(message: string): ConvertResult {
  return { ok: false, error: { code: 'kernel_host_failed', message } };
}
