/** The messages of marimo's server to its page, made from an open notebook. */

import type { PageAccess } from '#src/base/caller/page-access.ts';
import type { ElementCommand } from '#src/confined/processes/kernel/kernel.ts';
import type {
  CellOp,
  CellOutput,
  DocumentChange,
  KernelCellConfig,
} from '#src/confined/processes/kernel/messages.ts';
import type { VariableGraph } from '../open/dependencies.ts';
import type { LiveNotebook } from '../open/live-notebook.ts';
import { shownStatus, type ViewCell } from '../open/view.ts';
import { configOf } from '../saved/document.ts';
import { layoutOf } from './page-layout.ts';

type WidgetCommand = Extract<ElementCommand, { readonly type: 'model' }>;

/** One message: its name and its members. */
export type PageMessage = readonly [op: string, data: Readonly<Record<string, unknown>>];

/** marimo's name of a cell without a name. */
const NAMELESS = '_';
const ERRORS = 'application/vnd.marimo+error';
/** marimo's mark before the name of a cell that only defines this function or class: its page shows no name there. */
const DEFINITION = '*';

/**
 * Returns the messages from which a new page, or one that was cut off, builds its state. The state is that of now; messages are made
 * as they are asked for. `shownOutput` returns an output in the form for a page.
 */
export function stateMessages(
  live: LiveNotebook,
  access: PageAccess,
  shownOutput: (output: CellOutput) => unknown,
): Iterable<PageMessage> {
  const { cells, variables } = live.view;
  const ran = cells.filter((cell) => cell.ran !== null);
  const mayEdit = access === 'edit';
  const appOptions = live.document.serialization.app.options;
  const first: PageMessage[] = [
    [
      'kernel-ready',
      {
        cell_ids: cells.map(({ id }) => id),
        codes: cells.map(({ code }) => code),
        names: cells.map(({ code, options }) => pageName(configOf(options).name, code)),
        configs: cells.map(({ options }) => marimoConfig(configOf(options))),
        layout: layoutOf(appOptions),
        // Without this message the page would keep its own cells, and overwrite those of the
        // notebook.
        resumed: true,
        ui_values: live.uiValues.all(),
        last_executed_code: Object.fromEntries(ran.map(({ id, ran: last }) => [id, last?.code])),
        // Without this message the page treats the elements of a cell like those of a cell that has
        // not run.
        last_execution_time: Object.fromEntries(ran.map(({ id, ran: last }) => [id, last?.ms ?? 1])),
        app_config: appOptions,
        kiosk: !mayEdit,
        capabilities: { terminal: false, pylsp: false, ty: false, basedpyright: false, pyrefly: false },
        consumer_capabilities: { edit: mayEdit, interact: access !== 'view' },
        auto_instantiated: false,
        stable_session_id: live.sessionId,
      },
    ],
    variablesMessage(variables),
  ];
  const ofCells = cells.map((cell) => cellMessages(cell, shownOutput));
  return (function* () {
    yield* first;
    for (const messages of ofCells) yield* messages();
  })();
}

/** Returns the function that makes the messages with the whole state that a cell has now. */
function cellMessages(
  cell: ViewCell,
  shownOutput: (output: CellOutput) => unknown,
): () => Generator<PageMessage> {
  const { id, stale, output } = cell;
  const status = activityOf(cell);
  const entries = cell.console.entries();
  return function* () {
    yield cellMessage(id, {
      status,
      stale_inputs: stale,
      output: output && shownOutput(output),
      console: [],
    });
    for (const entry of entries) yield cellMessage(id, { console: shownOutput(entry) });
  };
}

/**
 * Returns the state of a cell without its output. Used after a change that no message of the kernel
 * caused.
 */
export function settledMessage(cell: ViewCell): PageMessage {
  return cellMessage(cell.id, { status: activityOf(cell), stale_inputs: cell.stale });
}

/** Returns a message of the kernel about a cell. The page takes printed text one entry at a time. */
export function cellOpMessages(op: CellOp): PageMessage[] {
  const [first, ...more] = op.console ?? [];
  const console = op.console === null ? null : first === undefined ? [] : pageOutput(first);
  return [
    cellMessage(op.cellId, {
      output: op.output && pageOutput(op.output),
      console,
      status: op.status,
      stale_inputs: op.staleInputs,
      run_id: op.runId,
      timestamp: op.timestamp,
    }),
    ...more.map((entry) => cellMessage(op.cellId, { console: pageOutput(entry) })),
  ];
}

/** Returns a change of some members of a cell; null members leave it as it is. */
export function cellMessage(cellId: string, members: Readonly<Record<string, unknown>>): PageMessage {
  const nothing = { output: null, console: null, status: null, stale_inputs: null, run_id: null };
  return ['cell-op', { cell_id: cellId, ...nothing, timestamp: Date.now() / 1000, ...members }];
}

/**
 * Returns the sentence for somebody who may not run an app that nobody has run yet. The sentence stands in the place of the first
 * cell's output, because marimo's page shows nothing else of an app. The cell's own output replaces the sentence.
 */
export function notRunMessage(cells: readonly ViewCell[]): PageMessage {
  const shown = cells.find(({ options }) => !configOf(options).disabled) ?? cells[0];
  const data =
    '<p>This app has not run yet. It shows its outputs once somebody who may edit the notebook opens it.</p>';
  const output = { channel: 'output', mimetype: 'text/html', data, timestamp: Date.now() / 1000 };
  return cellMessage(shown?.id ?? '', { output, status: 'idle' });
}

export function variablesMessage(variables: VariableGraph): PageMessage {
  return [
    'variables',
    {
      variables: variables.map(({ name, declaredBy, usedBy }) => ({
        name,
        declared_by: declaredBy,
        used_by: usedBy,
      })),
    },
  ];
}

/** Returns the new value of a UI element that the page has not set. */
export function valueMessage(elementId: string, value: unknown): PageMessage {
  return [
    'send-ui-element-message',
    { ui_element: elementId, message: { type: 'marimo-ui-value-update', value }, buffers: null },
  ];
}

/**
 * Returns the new state of a widget that another page has set; undefined for other messages to a widget. The kernel only reports
 * changes that its own code makes.
 */
export function widgetMessage({ modelId, message, buffers }: WidgetCommand): PageMessage | undefined {
  const { method, state, bufferPaths = [] } = message;
  if (method !== 'update') return undefined;
  return [
    'model-lifecycle',
    { model_id: modelId, message: { method, state, buffer_paths: bufferPaths, buffers } },
  ];
}

/** Returns changes of the document that the page did not make. */
export function transactionMessage(changes: readonly DocumentChange[]): PageMessage {
  const shown = changes.map((change) => {
    if (change.type === 'create-cell')
      return {
        ...change,
        name: pageName(change.name, change.code),
        config: marimoConfig(change.config),
      };
    if (change.type === 'set-name') return { ...change, name: change.name || NAMELESS };
    if (change.type === 'set-config') {
      const { type, cellId, config } = change;
      return { type, cellId, ...fullConfig(config) };
    }
    return change;
  });
  return [
    'notebook-document-transaction',
    { transaction: { changes: shown, source: 'kernel', version: null } },
  ];
}

/** Returns a change of the page in the form that the notebook accepts. */
export function pageChange(change: DocumentChange): DocumentChange {
  if (change.type !== 'create-cell' && change.type !== 'set-name') return change;
  if (change.name === NAMELESS) return { ...change, name: '' };
  return change.name.startsWith(DEFINITION) ? { ...change, name: change.name.slice(1) } : change;
}

function fullConfig({ disabled, hideCode, expandOutput, column }: KernelCellConfig) {
  return {
    disabled: disabled === true,
    hideCode: hideCode === true,
    expandOutput: expandOutput === true,
    column: column ?? null,
  };
}

function marimoConfig(config: KernelCellConfig) {
  const { disabled, hideCode, expandOutput, column } = fullConfig(config);
  return { disabled, hide_code: hideCode, expand_output: expandOutput, column };
}

/** Returns the name of a cell in marimo's form. */
function pageName(name: string, code: string): string {
  if (name === '') return NAMELESS;
  // Matches code whose first statement, after decorators, defines this name, and in which no other
  // statement begins a line.
  const [, defined] = /^(?:@.*\n)*(?:async +def|def|class) +(\w+)/.exec(code) ?? [];
  const isOnly = defined === name && !/\n(?![\s)#]|$)/.test(code.replace(/^(?:@.*\n)*/, ''));
  return isOnly ? DEFINITION + name : name;
}

/**
 * Returns an output without the parts that only clients of the API read. A prompt of `input()` is printed text, because nobody can answer
 * it here: the page would show a field for the answer, and give it the focus each time the page is loaded. marimo's own mark of an
 * answered prompt does not help, because the page drops it from the first printed text of a cell.
 */
export function pageOutput({ channel, mimetype, data, timestamp }: CellOutput) {
  if (channel === 'stdin') return { channel: 'stdout', mimetype: 'text/plain', data, timestamp };
  const shown = mimetype === ERRORS && Array.isArray(data) ? data.map(pageError) : data;
  return { channel, mimetype, data: shown, timestamp };
}

/** Returns an error without the id of the cell at fault at its end: the page writes a link there. */
function pageError(error: unknown): unknown {
  const { msg, raising_cell: cell } = Object(error) as {
    readonly msg?: unknown;
    readonly raising_cell?: unknown;
  };
  const named = `the cell ${cell}`;
  return typeof cell === 'string' && typeof msg === 'string' && msg.endsWith(named)
    ? { ...Object(error), msg: msg.slice(0, -named.length) }
    : error;
}

function activityOf(cell: ViewCell): ViewCell['activity'] {
  if (cell.activity !== 'idle') return cell.activity;
  const isDisabled = shownStatus(cell) === 'disabled' && !configOf(cell.options).disabled;
  return isDisabled ? 'disabled-transitively' : 'idle';
}
