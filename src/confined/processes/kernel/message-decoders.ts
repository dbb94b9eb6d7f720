import { isShortJson } from '#src/base/json/json-write.ts';
import { compactPart, shortenText } from '#src/base/text/compact-text.ts';
import type { OutputTable } from '#src/contract/wire/output.ts';
import {
  asBoolean,
  asList,
  asNumber,
  asOneOf,
  asRecord,
  asText,
  isRecord,
  orNull,
  ShapeError,
  textUpTo,
} from '../json-shape.ts';
import type {
  CellError,
  CellOutput,
  CellVerdict,
  DocumentChange,
  ElementFailure,
  KernelCellConfig,
  KernelMessage,
} from './messages.ts';

type Fields = Readonly<Record<string, unknown>>;

const CHANNELS = ['stdout', 'stderr', 'stdin', 'pdb', 'output', 'marimo-error', 'media'] as const;
const CELL_STATES = ['idle', 'queued', 'running', 'disabled-transitively'] as const;
const MAX_TEXT_CHARS = 20_000;
/**
 * The most characters of the text that names an output, and of the reason why the output cannot be
 * shown.
 */
const MAX_REASON_CHARS = 500;
/** One request sets values of at most this many elements, whose ids have at most this many characters. */
const MAX_ELEMENT_FAILURES = 1000;
const MAX_ELEMENT_ID_CHARS = 500;
/** A kernel sends printed text piece by piece, or an empty list. Each entry costs as much as a message. */
const MAX_CONSOLE_ENTRIES = 100;
/** Further completions and packages are left out. Requests and pages show fewer. */
const MAX_COMPLETIONS = 10_000;
const MAX_PACKAGES = 1000;
/** The longest name that RFC 6838 allows. */
const MAX_MIMETYPE_CHARS = 255;
/** The most characters of a table's rows, and of its columns' names and types. */
const MAX_TABLE_CHARS = 512 * 1024;
const MAX_TABLE_COLUMNS = 200;
const MAX_TABLE_ROWS = 1000;
/** The charge for a value whose JSON is counted before it is made, in characters: see `isShortJson`. */
const MAX_COUNTED_CHARS = 8;
/** The most changes of one message, and cells of one change. A notebook has fewer cells. */
const MAX_CHANGES = 30_000;
/** The most errors of one output, or of one cell. */
const MAX_ERRORS = 10_000;
/** The most names of variables, and of the cells that define and use them. Further variables are left out. */
const MAX_VARIABLE_NAMES = 60_000;
/** The most characters of the state of all widgets of a notebook. `MAX_SAVED_BYTES` of the kernel is the same. */
export const MAX_WIDGETS_CHARS = 8 * 2 ** 20;
const VERDICTS = [
  'success',
  'exception',
  'stopped',
  'cancelled',
  'interrupted',
  'marimo-error',
  'disabled',
] as const;

const DECODERS: ReadonlyMap<string, (fields: Fields) => KernelMessage> = new Map([
  ['cell-op', decodeCellOp],
  ['execution', decodeExecution],
  ['variables', decodeVariables],
  ['notebook-document-transaction', decodeTransaction],
  [
    'missing-package-alert',
    (f: Fields) => ({
      op: 'missing-package-alert',
      packages: texts(beginningOf(f.packages, MAX_PACKAGES), 'packages'),
    }),
  ],
  ['bridge-ready', (f: Fields) => ({ op: 'bridge-ready', hostMs: orNull(f.ms, asNumber, 'ms') })],
  ['function-call-result', decodeFunctionCallResult],
  ['completion-result', decodeCompletionResult],
  ['bridge-done', decodeBridgeDone],
  ['bridge-judged', decodeBridgeJudged],
  ['kernel-call', decodeKernelCall],
  ['bridge-asked', (f: Fields) => ({ op: 'bridge-asked', cells: texts(f.cells, 'cells') })],
  [
    'bridge-warning',
    (f: Fields) => ({
      op: 'bridge-warning',
      cellId: asText(f.cell_id, 'cell_id'),
      what: shortenText(asText(f.what, 'what'), MAX_REASON_CHARS),
      reason: shortenText(asText(f.reason, 'reason'), MAX_REASON_CHARS),
    }),
  ],
  [
    'bridge-page-state',
    (f: Fields) => ({
      op: 'bridge-page-state',
      page: asNumber(f.page, 'page'),
      isOver: asBoolean(f.is_over, 'is_over'),
    }),
  ],
  ['bridge-widgets', (f: Fields) => ({ op: 'bridge-widgets', widgets: asWidgets(f.widgets) })],
  [
    'bridge-app-options',
    (f: Fields) => ({ op: 'bridge-app-options', options: asRecord(f.options, 'options') }),
  ],
]);

/**
 * Returns the message in one frame. Any program in the kernel's process may have written the frame,
 * so it is not trusted. A known `op` with members of another shape throws ShapeError; an unknown
 * `op` passes through.
 */
export function decodeMessage(json: unknown): KernelMessage {
  const fields = asRecord(json, 'the message');
  const op = asText(fields.op, 'op');
  const decode = DECODERS.get(op);
  if (decode !== undefined) return decode(fields);
  return { op: 'other', name: op, fields };
}

/**
 * Messages that change or save a whole notebook, or make the server act. A correct kernel sends few
 * of them.
 */
const LONG_OPS: ReadonlySet<unknown> = new Set([
  'variables',
  'notebook-document-transaction',
  'bridge-app-options',
  'bridge-done',
  'bridge-judged',
  'kernel-call',
]);

/** Returns whether handling the message in a frame may take long, however short the message is. */
export function mayTakeLong(json: unknown): boolean {
  if (!isRecord(json)) return false;
  return LONG_OPS.has(json.op) || (Array.isArray(json.console) && json.console.length > 1);
}

function decodeCellOp(fields: Fields): KernelMessage {
  const { console } = fields;
  return {
    op: 'cell-op',
    cellId: asText(fields.cell_id, 'cell_id'),
    output: orNull(fields.output, asCellOutput, 'output'),
    console: isRecord(console)
      ? [asCellOutput(console, 'console')]
      : orNull(console, (list, where) => asList(list, asCellOutput, where, MAX_CONSOLE_ENTRIES), 'console'),
    status: orNull(fields.status, (value, where) => asOneOf(value, CELL_STATES, where), 'status'),
    staleInputs: orNull(fields.stale_inputs, asBoolean, 'stale_inputs'),
    runId: orNull(fields.run_id, asText, 'run_id'),
    executionId: orNull(fields.execution_id, asText, 'execution_id'),
    timestamp: asNumber(fields.timestamp, 'timestamp'),
  };
}

function decodeExecution(fields: Fields): KernelMessage {
  return {
    op: 'execution',
    executionId: asText(fields.execution_id, 'execution_id'),
    cellId: asText(fields.cell_id, 'cell_id'),
    runId: orNull(fields.run_id, asText, 'run_id'),
    phase: asOneOf(fields.phase, ['planned', 'running', 'completed'], 'phase'),
  };
}

function decodeVariables(fields: Fields): KernelMessage {
  const variable = (value: unknown) => {
    const one = asRecord(value, 'variable');
    return {
      name: asText(one.name, 'name'),
      declaredBy: texts(one.declared_by, 'declared_by'),
      usedBy: texts(one.used_by, 'used_by'),
    };
  };
  const listed = asList(fields.variables, (one) => one, 'variables');
  const variables: ReturnType<typeof variable>[] = [];
  let names = 0;
  for (const one of listed) {
    const { declared_by: declaredBy, used_by: usedBy } = asRecord(one, 'variable');
    for (const cells of [declaredBy, usedBy]) if (Array.isArray(cells)) names += cells.length;
    if (++names > MAX_VARIABLE_NAMES) break;
    variables.push(variable(one));
  }
  return { op: 'variables', variables };
}

function decodeTransaction(fields: Fields): KernelMessage {
  const transaction = asRecord(fields.transaction, 'transaction');
  return {
    op: 'notebook-document-transaction',
    source: asText(transaction.source, 'source'),
    changes: asList(transaction.changes, asDocumentChange, 'changes', MAX_CHANGES),
  };
}

/** Reads an id or a name of a change, which also pages send. */
const asName = textUpTo(4096);

export function asDocumentChange(value: unknown): DocumentChange {
  const change = asRecord(value, 'change');
  const type = asName(change.type, 'type');
  if (type === 'reorder-cells')
    return { type, cellIds: asList(change.cellIds, asName, 'cellIds', MAX_CHANGES) };
  const cellId = asName(change.cellId, 'cellId');
  const place = () => ({
    before: orNull(change.before, asName, 'before'),
    after: orNull(change.after, asName, 'after'),
  });
  switch (type) {
    case 'create-cell':
      return {
        type,
        cellId,
        code: asText(change.code, 'code'),
        name: asName(change.name, 'name'),
        config: asConfig(asRecord(change.config, 'config')),
        ...place(),
      };
    case 'delete-cell':
      return { type, cellId };
    case 'move-cell':
      return { type, cellId, ...place() };
    case 'set-code':
      return { type, cellId, code: asText(change.code, 'code') };
    case 'set-name':
      return { type, cellId, name: asName(change.name, 'name') };
    case 'set-config':
      return { type, cellId, config: asConfig(change) };
    default:
      throw new ShapeError(`change is of unknown type ${type}`);
  }
}

/** Reads a configuration, which marimo writes in snake case inside create-cell and in camel case inside set-config. */
function asConfig(fields: Fields): KernelCellConfig {
  return {
    disabled: orNull(fields.disabled, asBoolean, 'disabled') ?? false,
    hideCode: orNull(fields.hide_code ?? fields.hideCode, asBoolean, 'hideCode') ?? false,
    expandOutput: orNull(fields.expand_output ?? fields.expandOutput, asBoolean, 'expandOutput') ?? false,
    column: orNull(fields.column, asNumber, 'column'),
  };
}

function decodeBridgeDone(fields: Fields): KernelMessage {
  const cells = Object.entries(asRecord(fields.cells, 'cells'));
  const error = orNull(fields.error, asText, 'error');
  return {
    op: 'bridge-done',
    seq: orNull(fields.seq, asNumber, 'seq'),
    type: asText(fields.type, 'type'),
    error: error === null ? null : shortenText(error, MAX_TEXT_CHARS),
    interrupted: orNull(fields.interrupted, asBoolean, 'interrupted') ?? false,
    cells: new Map(cells.map(([cellId, verdict]) => [cellId, asVerdict(verdict)])),
    ...(fields.unknown == null ? {} : { unknown: texts(fields.unknown, 'unknown') }),
    ...(fields.failures == null ? {} : { failures: asElementFailures(fields.failures) }),
  };
}

function asElementFailures(value: unknown): readonly ElementFailure[] {
  return Object.entries(asRecord(value, 'failures'))
    .filter(([elementId]) => elementId.length <= MAX_ELEMENT_ID_CHARS)
    .slice(0, MAX_ELEMENT_FAILURES)
    .map(([elementId, failure]) => {
      const [reason, isSet] = asList(failure, (part) => part, elementId);
      return {
        elementId,
        reason: shortenText(asText(reason, 'reason'), MAX_REASON_CHARS),
        isSet: asBoolean(isSet, 'isSet'),
      };
    });
}

function decodeFunctionCallResult(fields: Fields): KernelMessage {
  const { code, title, message } = asRecord(fields.status, 'status');
  const text =
    orNull(message, asText, 'message') ?? orNull(title, asText, 'title') ?? 'The function has failed.';
  return {
    op: 'function-call-result',
    functionCallId: asText(fields.function_call_id, 'function_call_id'),
    found: asBoolean(fields.found, 'found'),
    failure: asText(code, 'code') === 'ok' ? null : shortenText(text, MAX_TEXT_CHARS),
    value: fields.return_value ?? null,
    fields,
  };
}

function decodeCompletionResult(fields: Fields): KernelMessage {
  const option = (value: unknown) => {
    const one = asRecord(value, 'option');
    return {
      name: asText(one.name, 'name'),
      type: asText(one.type, 'type'),
      info: orNull(one.completion_info, asText, 'completion_info'),
    };
  };
  return {
    op: 'completion-result',
    completionId: asText(fields.completion_id, 'completion_id'),
    prefixLength: Math.trunc(asNumber(fields.prefix_length, 'prefix_length')),
    options: asList(beginningOf(fields.options, MAX_COMPLETIONS), option, 'options'),
    fields,
  };
}

function decodeBridgeJudged(fields: Fields): KernelMessage {
  const errors = Object.entries(asRecord(fields.errors, 'errors'));
  return {
    op: 'bridge-judged',
    errors: new Map(errors.map(([cellId, list]) => [cellId, asList(list, asCellError, cellId, MAX_ERRORS)])),
  };
}

function decodeKernelCall(fields: Fields): KernelMessage {
  return {
    op: 'kernel-call',
    id: asNumber(fields.id, 'id'),
    method: asText(fields.method, 'method'),
    fields,
  };
}

function asVerdict(value: unknown): CellVerdict {
  if (!Array.isArray(value) || value.length !== 3) throw new ShapeError('a verdict is not a triple');
  const [status, stale, errors]: readonly unknown[] = value;
  return {
    status: orNull(status, (one, where) => asOneOf(one, VERDICTS, where), 'status'),
    stale: asBoolean(stale, 'stale'),
    errors: asList(errors, asCellError, 'errors', MAX_ERRORS),
  };
}

/** Throws ShapeError for more than the bridge ever sends. */
function asWidgets(value: unknown): string {
  const widgets = asText(value, 'widgets');
  if (widgets.length > MAX_WIDGETS_CHARS) throw new ShapeError('the state of widgets is too large');
  return widgets;
}

function asCellOutput(value: unknown, where: string): CellOutput {
  const output = asRecord(value, where);
  const text = orNull(output.text, asText, 'text');
  const table = orNull(output.table, asOutputTable, 'table');
  return {
    channel: asOneOf(output.channel, CHANNELS, 'channel'),
    mimetype: compactPart(asText(output.mimetype, 'mimetype'), 0, MAX_MIMETYPE_CHARS),
    data: asOutputData(output.data),
    timestamp: asNumber(output.timestamp, 'timestamp'),
    ...(text === null ? {} : { text: compactPart(text, 0, MAX_TEXT_CHARS) }),
    ...(table === null ? {} : { table }),
  };
}

/**
 * Throws ShapeError for a table that is larger than the bridge ever sends, so that its readers need
 * not check sizes.
 */
function asOutputTable(value: unknown): OutputTable {
  const table = asRecord(value, 'table');
  const isCounted = isShortJson(table.rows, MAX_COUNTED_CHARS * MAX_TABLE_CHARS);
  if (!isCounted) throw new ShapeError('a table is too large');
  const rows = asList(table.rows, (row, where) => asList(row, (cell) => cell, where), 'rows', MAX_TABLE_ROWS);
  if (rows.length > 0 && JSON.stringify(rows).length > MAX_TABLE_CHARS)
    throw new ShapeError('a table is too large');
  const columns = asList(
    table.columns,
    (one) => {
      const column = asRecord(one, 'column');
      return { name: asText(column.name, 'name'), type: asText(column.type, 'type') };
    },
    'columns',
    MAX_TABLE_ROWS,
  ).slice(0, MAX_TABLE_COLUMNS);
  const columnChars = columns.reduce((sum, { name, type }) => sum + name.length + type.length, 0);
  if (columnChars > MAX_TABLE_CHARS) throw new ShapeError('a table is too large');
  return {
    columns,
    rows,
    rowCount: asNumber(table.rowCount, 'rowCount'),
    columnCount: asNumber(table.columnCount, 'columnCount'),
  };
}

function asOutputData(data: unknown): CellOutput['data'] {
  if (typeof data === 'string') return data;
  if (Array.isArray(data)) return asList(data, asCellError, 'data', MAX_ERRORS);
  return asRecord(data, 'data');
}

function asCellError(value: unknown): CellError {
  if (isCellError(value)) return value;
  throw new ShapeError('the error has another shape');
}

/**
 * Returns whether the members that the server reads have the expected types. marimo may add others.
 */
function isCellError(value: unknown): value is CellError {
  if (!isRecord(value) || typeof value.type !== 'string') return false;
  const optionalText = (one: unknown) => one === undefined || one === null || typeof one === 'string';
  const { cells, edges_with_vars: edges, lineno, msg, name } = value;
  return (
    msg !== null &&
    name !== null &&
    [msg, name, value.exception_type, value.raising_cell, value.traceback].every(optionalText) &&
    (lineno === undefined || lineno === null || typeof lineno === 'number') &&
    (cells === undefined || (Array.isArray(cells) && cells.every((one) => typeof one === 'string'))) &&
    (edges === undefined || Array.isArray(edges))
  );
}

/** Returns the first elements of a list. Another value stays as it is. */
function beginningOf(value: unknown, count: number): unknown {
  return Array.isArray(value) && value.length > count ? value.slice(0, count) : value;
}

function texts(value: unknown, where: string): readonly string[] {
  return asList(value, asText, where);
}
