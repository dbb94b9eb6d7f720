import type { ChildEnd, ChildStarter } from '../confined-child.ts';
import { encodeLongFrame } from '../frame-decoder.ts';
import { asList, asRecord, asText, isRecord } from '../json-shape.ts';
import type { CellOutput } from '../kernel/messages.ts';
import { bareConfinement, type ChildRequest, type Confinement } from '../launch-order.ts';

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

/** The reason for a failed conversion. `ConvertResult` lists the codes. */
export interface ConversionFailure {
  readonly code: string;
  readonly message: string;
}

/**
 * Has `serialization` after a read and `content` after a write. The code of a failure: `unreadable_notebook` or
 * `unwritable_notebook` when the input is at fault, `kernel_host_failed` when no kernel host runs, `conversion_failed`
 * when the converter crashed or took too long.
 */
export type ConvertResult =
  | { readonly ok: true; readonly serialization: ConvertedNotebook; readonly content: null }
  | { readonly ok: true; readonly serialization: null; readonly content: string }
  | { readonly ok: false; readonly error: ConversionFailure };

const INPUT = 1;
const TIMEOUT_MS = 30_000;

/** Converts in a child process that parses and never runs the notebook. Always resolves; the child is gone then. */
export async function convertInChild(request: ConvertRequest, host: ChildStarter): Promise<ConvertResult> {
  const { direction, format, ...input } = request;
  return new Promise((resolve) => {
    const settle = (result: ConvertResult) => {
      clearTimeout(timeout);
      child[Symbol.dispose]();
      resolve(result);
    };
    const timeout = setTimeout(() => settle(failed('The conversion took too long.')), TIMEOUT_MS);
    const childRequest = (confinement: Confinement | null): ChildRequest => ({
      order: { op: 'convert', confine: bareConfinement(confinement) },
      launch: { direction, format },
    });
    const child = host.startChild(childRequest, {
      received: (values) => {
        for (const value of values) {
          const message = asRecord(value, 'the message');
          if (message.op === 'convert-ready') child.sender.send(encodeLongFrame(INPUT, input));
          else if (message.op === 'convert-done') settle(decodeResult(direction, message));
        }
      },
      ended: (end) => settle(failureOf(end)),
    });
  });
}

function failureOf(end: ChildEnd): ConvertResult {
  switch (end.kind) {
    case 'ended':
      return failed('The converter ended without an answer.');
    case 'broken':
      return failed(`The converter sent ${end.reason}.`);
    case 'failed':
      return failed('The converter sent something that the server could not take.');
    case 'lost':
      return hostFailed('The kernel host ended during the conversion.');
    default:
      return hostFailed(end.reason);
  }
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
