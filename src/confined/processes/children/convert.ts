import { endOfText } from '#src/base/text/cut-text.ts';
import type { ChildStarter } from '../confined-child.ts';
import type { ProcessEnd } from '../exit-classification.ts';
import { asList, asRecord, asText, isRecord } from '../json-shape.ts';
import type { CellOutput } from '../kernel/messages.ts';
import { bareConfinement, type ChildRequest, type Confinement } from '../launch-order.ts';
import type { KernelLimits } from '../limits.ts';
import { workspaceCharge } from '../workspace-charge.ts';
import { askOnce, type QuestionEnd } from './one-question.ts';

/** Reads a notebook file of this format into our serialization, writes one, or reads the snippets of marimo's package. */
export type ConvertRequest =
  | {
      readonly direction: 'read';
      readonly format: 'py' | 'ipynb' | 'md';
      readonly content: string;
      /**
       * Whether packages that the notebook's cells ask pip for become dependencies of the notebook.
       */
      readonly installs?: boolean;
    }
  | {
      readonly direction: 'write';
      readonly format: 'py' | 'ipynb' | 'md' | 'html';
      readonly serialization: Readonly<Record<string, unknown>>;
      /** Saved outputs by cell id, for formats that can hold them. */
      readonly results?: Readonly<
        Record<string, { readonly output?: CellOutput | null; readonly console?: readonly CellOutput[] }>
      >;
      /** For an HTML page: the state of the widgets in the outputs, as the kernel has sent it. */
      readonly widgets?: string;
      readonly title?: string;
      /** The address of marimo's front end for an HTML page. */
      readonly assetUrl?: string;
      /** Whether an HTML page has the code of the cells; true by default. */
      readonly includeCode?: boolean;
    }
  | { readonly direction: 'list'; readonly format: 'snippets' };

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

/** The packages that the cells of a Jupyter notebook ask pip for. */
export interface PipRequirements {
  /** Requirements that can become dependencies of the notebook. */
  readonly requirements: readonly string[];
  /**
   * Words and lines that cannot become dependencies, such as files of requirements and other
   * indexes.
   */
  readonly others: readonly string[];
}

/** The reason for a failed conversion. `ConvertResult` lists the codes. */
export interface ConversionFailure {
  readonly code: string;
  readonly message: string;
}

/**
 * The result: `serialization` after a read, `content` after a write or a list, and otherwise the code of a
 * failure. The code is `unreadable_notebook` or `unwritable_notebook` when the input is at fault,
 * `kernel_host_failed` when no kernel host runs, and `conversion_failed` when the converter crashed
 * or took too long.
 */
export type ConvertResult =
  | {
      readonly ok: true;
      readonly serialization: ConvertedNotebook;
      readonly pip: PipRequirements | null;
      readonly content: null;
    }
  | { readonly ok: true; readonly serialization: null; readonly content: string }
  | { readonly ok: false; readonly error: ConversionFailure };

const TIMEOUT_MS = 30_000;
/** How much of a converter's own explanation of its end is shown. */
const MAX_WORDS_CHARS = 500;

/**
 * Converts a notebook in a child process that parses it and never runs it. The process counts
 * towards the workspace that has this folder of files. Always resolves, once the child has ended.
 */
export async function convertInChild(
  request: ConvertRequest,
  filesDirectory: string,
  limits: KernelLimits,
  host: ChildStarter,
): Promise<ConvertResult> {
  const { direction, format, ...input } = request;
  const question = {
    request: (confinement: Confinement | null): ChildRequest => ({
      order: {
        op: 'convert',
        ...workspaceCharge(filesDirectory, limits),
        confine: bareConfinement(confinement),
      },
      launch: { direction, format },
    }),
    question: input,
    readyOp: 'convert-ready',
    answerOp: 'convert-done',
    timeoutMs: TIMEOUT_MS,
  };
  return askOnce(host, question, (end) =>
    end.kind === 'answered' ? decodeResult(direction, end.message) : failureOf(end),
  );
}

function failureOf(end: Exclude<QuestionEnd, { kind: 'answered' }>): ConvertResult {
  switch (end.kind) {
    case 'too-slow':
      return failed('The conversion took too long.');
    case 'ended':
      return failed(`The converter ended without an answer${causeOf(end.process)}.`);
    case 'broken':
      return failed(`The converter sent ${end.reason}.`);
    case 'deaf':
      return failed('The converter did not read what it was sent.');
    case 'failed':
      return failed('The converter sent a message that the server could not read.');
    case 'lost':
      return hostFailed('The kernel host ended during the conversion.');
    default:
      return hostFailed(end.reason);
  }
}

function causeOf(end: ProcessEnd | null): string {
  if (end === null) return '';
  if (end.outOfMemory || end.machineOutOfMemory) return ' for lack of memory';
  if (end.signal !== null) return ` (signal ${end.signal})`;
  const words = end.words?.trim() ?? '';
  return ` (exit code ${end.code}${words === '' ? '' : `: ${endOfText(words, MAX_WORDS_CHARS)}`})`;
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
    ? {
        ok: true,
        serialization: decodeNotebook(message.serialization),
        pip: message.pip == null ? null : decodePip(message.pip),
        content: null,
      }
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

function decodePip(value: unknown): PipRequirements {
  const { requirements, others } = asRecord(value, 'pip');
  const texts = (list: unknown) => asList(list, (text) => asText(text, 'pip'), 'pip');
  return { requirements: texts(requirements), others: texts(others) };
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
