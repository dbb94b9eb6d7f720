/** The requests of marimo's page, by their path below the address of the notebook, with the access that each needs. */

import { inSlices } from '#src/base/async/slices.ts';
import type { PageAccess } from '#src/base/caller/page-access.ts';
import { decodeUtf8 } from '#src/base/text/utf8.ts';
import {
  asBoolean,
  asList,
  asRecord,
  asText,
  isRecord,
  orNull,
  ShapeError,
  textUpTo,
} from '#src/confined/processes/json-shape.ts';
import type { ElementCommand } from '#src/confined/processes/kernel/kernel.ts';
import { asDocumentChange } from '#src/confined/processes/kernel/message-decoders.ts';
import type { DocumentChange, KernelCellConfig } from '#src/confined/processes/kernel/messages.ts';
import { MAX_VARIABLE_CHARS, SECRET_NAME } from '#src/contract/wire/notebook.ts';
import { MAX_REMOVED_FILES } from '#src/workspace/files/element-files.ts';
import { type LiveNotebook, MAX_APP_OPTIONS_CHARS } from '../open/live-notebook.ts';
import { MAX_CELLS, MAX_CODE_CHARS } from '../open/view.ts';
import { configOf, withConfig } from '../saved/document.ts';
import type { ExportRequest, NotebookFile, WritableFormat } from '../saved/notebook-files.ts';
import type { PageCaller, PageHub } from './page-hub.ts';
import { asPageLayout } from './page-layout.ts';

type Body = Readonly<Record<string, unknown>>;

/** The objects that a request uses. */
export interface PageContext {
  readonly hub: PageHub;
  readonly live: LiveNotebook;
  readonly caller: PageCaller;
  readonly secrets: {
    /** Returns the names of the notebook's secrets. */
    names(): readonly string[];
    /** Stores a secret of the notebook, in place of the one with this name. Throws `quota_exceeded`. */
    set(name: string, value: string): void;
  };
  /** Ends the kernel; the next use of the session starts another one. Throws the refusal of a session that is not ready. */
  readonly restart: () => void;
  /** Closes the session. Rejects with `session_closed` when somebody else has closed it. */
  readonly close: () => Promise<void>;
  /** Creates a copy of the saved notebook with this title, and resolves with its id. */
  readonly duplicate: (title: string | null) => Promise<string>;
  /** Resolves with marimo's snippets of code. */
  readonly snippets: () => Promise<unknown>;
  /** Removes files that the page has sent to elements, and that no value names. */
  readonly discardFiles: (ids: readonly string[]) => Promise<void>;
  /** Resolves with the saved notebook as a file. */
  readonly exportAs: (request: Omit<ExportRequest, 'assetUrl'>) => Promise<NotebookFile>;
}

/**
 * The answer to a request: JSON, text, or the notebook as a file. `success`: the page gets any result as a
 * message on its stream.
 */
export type PageAnswer =
  | 'success'
  | { readonly json: unknown }
  | { readonly text: string }
  | { readonly file: NotebookFile; readonly format: WritableFormat };

export interface PageOperation {
  readonly method: 'GET' | 'POST';
  /** The least access that the request needs. */
  readonly access: PageAccess;
  /** Carries out the request. Throws `ShapeError` for a body of another shape. */
  readonly handle: (context: PageContext, body: Body) => PageAnswer | Promise<PageAnswer>;
}

const SUCCESS: PageAnswer = 'success';
const MAX_CHANGES = 10_000;
/** How many cells the changes of one request may name together: those of a whole notebook, and their order. */
const MAX_NAMED_CELLS = 2 * MAX_CELLS;
const MAX_TITLE_CHARS = 200;
/** How many UI elements one request may name. */
const MAX_ELEMENTS = 10_000;
/** How many steps the path to a schema may have, and how many formats may be downloaded automatically. */
const MAX_STEPS = 100;

/** Reads a name, an id or an address. Every member of a request has a bound. */
const asName = textUpTo(4096);
const asCode = textUpTo(MAX_CODE_CHARS);
/** Reads SQL, or code up to the cursor. The bound is that of completions in the API. */
const asQuery = textUpTo(500_000);
/** The place of secrets that the panel names beside each of them. */
const SECRET_PROVIDER = 'This notebook (a change needs a restart of the kernel)';

const post = (access: PageAccess, handle: PageOperation['handle']): PageOperation => ({
  method: 'POST',
  access,
  handle,
});
const get = (json: unknown): PageOperation => ({ method: 'GET', access: 'view', handle: () => ({ json }) });
const nothing = () => SUCCESS;

/**
 * The operations by their path. Troupe does not support a path that is missing here; the page shows
 * that in its panel.
 */
export const PAGE_REQUESTS: ReadonlyMap<string, PageOperation> = new Map([
  [
    'api/document/transaction',
    post('edit', ({ hub, caller }, body) => {
      const changes = asList(body.changes, asDocumentChange, 'changes', MAX_CHANGES);
      requireFewCells(changes);
      hub.change(caller, changes);
      return SUCCESS;
    }),
  ],
  [
    'api/kernel/run',
    post('edit', ({ hub, caller }, body) => {
      const cellIds = asList(body.cellIds, asName, 'cellIds', MAX_CELLS);
      const codes = asList(body.codes, asCode, 'codes', MAX_CELLS);
      const cells = cellIds.map((cellId, at) => ({ cellId, code: codes[at] ?? '' }));
      if (cells.length > 0) hub.run(caller, cells);
      return SUCCESS;
    }),
  ],
  ['api/kernel/set_ui_element_value', post('interact', element(uiValues))],
  [
    'api/element-files/discard',
    post('interact', async ({ discardFiles }, body) => {
      await discardFiles(asList(body.ids, asName, 'ids', MAX_REMOVED_FILES));
      return SUCCESS;
    }),
  ],
  ['api/kernel/set_model_value', post('interact', element(modelMessage))],
  ['api/kernel/function_call', post('interact', element(functionCall))],
  ['api/datasources/preview_column', post('interact', element(columnPreview))],
  ['api/datasources/preview_datasource_connection', post('edit', element(connectionPreview))],
  ['api/datasources/preview_sql_schema_list', post('edit', element(schemaList))],
  ['api/datasources/preview_sql_table_list', post('edit', element(tableList))],
  ['api/datasources/preview_sql_table', post('edit', element(tablePreview))],
  ['api/sql/validate', post('edit', element(sqlCheck))],
  [
    'api/kernel/code_autocomplete',
    post('interact', ({ hub }, body) => {
      hub.complete({
        id: asName(body.id, 'id'),
        document: asQuery(body.document, 'document'),
        cellId: asName(body.cellId, 'cellId'),
      });
      return SUCCESS;
    }),
  ],
  [
    'api/kernel/interrupt',
    post('edit', ({ hub }) => {
      hub.interrupt();
      return SUCCESS;
    }),
  ],
  [
    'api/kernel/delete',
    post('edit', ({ hub, caller }, body) => {
      hub.change(caller, [{ type: 'delete-cell', cellId: asName(body.cellId, 'cellId') }]);
      return SUCCESS;
    }),
  ],
  [
    'api/kernel/set_cell_config',
    post('edit', ({ hub, live, caller }, body) => {
      hub.change(caller, configChanges(live, asRecord(body.configs, 'configs')));
      return SUCCESS;
    }),
  ],
  [
    'api/kernel/save',
    post('edit', ({ hub, caller }, body) => {
      // Edits of cells are saved as they are made, so this request only saves the layout of the
      // app.
      hub.saveLayout(caller, orNull(body.layout, asPageLayout, 'layout'));
      return { text: '' };
    }),
  ],
  [
    'api/kernel/save_app_config',
    post('edit', ({ hub, caller }, body) => {
      hub.saveAppOptions(caller, appOptions(asRecord(body.config, 'config')));
      return { text: '' };
    }),
  ],
  [
    'api/kernel/rename',
    post('edit', ({ hub, caller }, body) => {
      hub.setAppOptions(caller, { app_title: titleOfFile(asName(body.filename, 'filename')) });
      return SUCCESS;
    }),
  ],
  [
    'api/kernel/read_code',
    post('view', async ({ exportAs }) => {
      const { content } = await exportAs({ format: 'py' });
      return { json: { contents: await inSlices(decodeUtf8(content)) } };
    }),
  ],
  [
    'api/kernel/restart_session',
    post('edit', ({ restart }) => {
      restart();
      return SUCCESS;
    }),
  ],
  [
    'api/kernel/shutdown',
    post('edit', async ({ close }) => {
      await close();
      return SUCCESS;
    }),
  ],
  [
    'api/kernel/copy',
    post('edit', async ({ duplicate }, body) => {
      const notebookId = await duplicate(titleOfFile(asName(body.destination, 'destination')));
      return { json: { notebookId } };
    }),
  ],
  ['api/kernel/instantiate', post('view', nothing)],
  ['api/kernel/save_user_config', post('view', nothing)],
  ['api/kernel/takeover', post('view', () => ({ json: { status: 'ok' } }))],
  ['api/kernel/pdb/breakpoints', post('view', nothing)],
  ['api/kernel/format', post('edit', () => ({ json: { codes: {} } }))], // a keyboard shortcut asks for it, too
  [
    'api/documentation/snippets',
    { method: 'GET', access: 'view', handle: async ({ snippets }) => ({ json: await snippets() }) },
  ],
  ['api/lsp/health', get({ status: 'healthy', servers: [] })],
  ['api/datasources/discover', post('view', found('data-source-discovery-result', { sources: [] }))],
  [
    'api/secrets/keys',
    post('edit', ({ hub, caller, secrets }, body) => {
      // The page offers to add secrets to providers of this kind only.
      const shown = [{ provider: 'dotenv', name: SECRET_PROVIDER, keys: secrets.names() }];
      const request_id = asName(body.requestId, 'requestId');
      hub.tell(caller, ['secret-keys-result', { request_id, secrets: shown }]);
      return SUCCESS;
    }),
  ],
  [
    'api/secrets/create',
    post('edit', ({ secrets }, body) => {
      const [name, value] = [asSecretName(body.key), asSecretValue(body.value)];
      secrets.set(name, value);
      return SUCCESS;
    }),
  ],
  ['api/export/availability', get({ source: 'server', formats: exportFormats() })],
  ['api/export/html', post('view', exported('html'))],
  ['api/export/script', post('view', exported('py'))],
  ['api/export/markdown', post('view', exported('md'))],
  ['api/export/ipynb', post('view', exported('ipynb'))],
  // The page sends pictures of outputs before it exports them; the server writes the outputs themselves.
  ['api/export/update_cell_outputs', post('view', nothing)],
  ['api/home/running_notebooks', post('view', () => ({ json: { files: [] } }))],
  ['api/usage', get(usage())],
]);

/** Answers with the notebook as a file of this format. */
function exported(format: WritableFormat): PageOperation['handle'] {
  return async ({ exportAs }, { includeCode, includeOutputs }) => ({
    format,
    file: await exportAs({
      format,
      includeCode: includeCode !== false,
      includeOutputs: includeOutputs !== false,
    }),
  });
}

/** The formats that the page offers for exporting. Only PDF, which would need a browser on the server, is missing. */
function exportFormats() {
  return ['html', 'markdown', 'ipynb', 'script', 'pdf'].map((format) => ({
    format,
    dependenciesAvailable: format !== 'pdf',
    missingPackages: [],
    missingSetup: format === 'pdf' ? [{ name: 'playwright-chromium', command: 'marimo export pdf' }] : [],
  }));
}

/** Reads the name of a secret as the API does. */
function asSecretName(sent: unknown): string {
  const name = asName(sent, 'key');
  if (!new RegExp(SECRET_NAME).test(name))
    throw new ShapeError(
      'key is not the name of an environment variable: letters, digits and _, at most 128',
    );
  return name;
}

/** Reads the value of a secret as the API does. No error contains it. */
function asSecretValue(sent: unknown): string {
  const value = asText(sent, 'value');
  if (value === '') throw new ShapeError('value is empty');
  if (value.length > MAX_VARIABLE_CHARS)
    throw new ShapeError(`value has more than ${MAX_VARIABLE_CHARS} characters`);
  if (value.includes('\0')) throw new ShapeError('value has the character U+0000');
  return value;
}

/** One option may take as much as all of them together. */
const asOption = textUpTo(MAX_APP_OPTIONS_CHARS);

/** The options of an app that marimo's page offers; it sends all of them with each change. */
const APP_OPTIONS: Readonly<Record<string, (value: unknown, where: string) => unknown>> = {
  width: asName,
  app_title: asTitle,
  css_file: asOption,
  html_head_file: asOption,
  sql_output: asName,
  auto_download: (value, where) => asList(value, asName, where, MAX_STEPS),
};

/** Returns the options of the app that a page may set. One without a value, null, is removed. */
function appOptions(config: Body): Body {
  const options = Object.entries(APP_OPTIONS)
    .filter(([name]) => config[name] !== undefined)
    .map(([name, read]) => [name, orNull(config[name], read, `config.${name}`)]);
  return Object.fromEntries(options);
}

/**
 * Reads a title in the form of the API: a line of at most 200 characters. marimo's page sends an
 * empty title for none.
 */
function asTitle(value: unknown, where: string): string | null {
  const title = asText(value, where);
  if (title.length > MAX_TITLE_CHARS)
    throw new ShapeError(`${where} has more than ${MAX_TITLE_CHARS} characters`);
  if (/\p{Cc}/u.test(title)) throw new ShapeError(`${where} has control characters`);
  return title === '' ? null : title;
}

/** Returns the title of a notebook whose file the page gives this name. */
function titleOfFile(path: string): string | null {
  const name = path.slice(path.lastIndexOf('/') + 1);
  return asTitle(name.replace(/\.(?:py|md|qmd)$/, ''), 'filename');
}

function element(read: (body: Body) => ElementCommand): PageOperation['handle'] {
  return ({ hub, caller }, body) => {
    hub.element(caller, read(body));
    return SUCCESS;
  };
}

/** Answers with a message on the page's stream that nothing was found. */
function found(op: string, nothing: Body): PageOperation['handle'] {
  return ({ hub, caller }, body) => {
    hub.tell(caller, [op, { request_id: asName(body.requestId, 'requestId'), ...nothing }]);
    return SUCCESS;
  };
}

function uiValues(body: Body): ElementCommand {
  const objectIds = asList(body.objectIds, asName, 'objectIds', MAX_ELEMENTS);
  const values = asList(body.values, (value) => value, 'values', MAX_ELEMENTS);
  return {
    type: 'update-ui-element',
    objectIds: objectIds.slice(0, values.length),
    values: values.slice(0, objectIds.length),
  };
}

function modelMessage(body: Body): ElementCommand {
  return {
    type: 'model',
    modelId: asName(body.modelId, 'modelId'),
    message: asRecord(body.message, 'message'),
    // Buffers are data: only the limit of the body bounds them.
    buffers:
      orNull(body.buffers, (list, where) => asList(list, asText, where, MAX_ELEMENTS), 'buffers') ?? [],
  };
}

function functionCall(body: Body): ElementCommand {
  return {
    type: 'invoke-function',
    functionCallId: asName(body.functionCallId, 'functionCallId'),
    namespace: asName(body.namespace, 'namespace'),
    functionName: asName(body.functionName, 'functionName'),
    args: asRecord(body.args, 'args'),
  };
}

function columnPreview(body: Body): ElementCommand {
  return {
    type: 'preview-dataset-column',
    sourceType: asName(body.sourceType, 'sourceType'),
    source: asName(body.source, 'source'),
    tableName: asName(body.tableName, 'tableName'),
    columnName: asName(body.columnName, 'columnName'),
    fullyQualifiedTableName: orNull(body.fullyQualifiedTableName, asName, 'fullyQualifiedTableName'),
  };
}

function connectionPreview(body: Body): ElementCommand {
  return { type: 'list-data-source-connection', engine: asName(body.engine, 'engine') };
}

function sqlPlace(body: Body) {
  return {
    requestId: asName(body.requestId, 'requestId'),
    engine: asName(body.engine, 'engine'),
    database: asName(body.database, 'database'),
    schemaPath:
      orNull(body.schemaPath, (list, where) => asList(list, asName, where, MAX_STEPS), 'schemaPath') ?? [],
  };
}

function schemaList(body: Body): ElementCommand {
  return { type: 'list-sql-schemas', ...sqlPlace(body) };
}

function tableList(body: Body): ElementCommand {
  return { type: 'list-sql-tables', ...sqlPlace(body), schema: asName(body.schema, 'schema') };
}

function tablePreview(body: Body): ElementCommand {
  const tableName = asName(body.tableName, 'tableName');
  return { type: 'preview-sql-table', ...sqlPlace(body), schema: asName(body.schema, 'schema'), tableName };
}

function sqlCheck(body: Body): ElementCommand {
  return {
    type: 'validate-sql',
    requestId: asName(body.requestId, 'requestId'),
    query: asQuery(body.query, 'query'),
    onlyParse: asBoolean(body.onlyParse, 'onlyParse'),
    engine: orNull(body.engine, asName, 'engine'),
    dialect: orNull(body.dialect, asName, 'dialect'),
  };
}

/** Throws `ShapeError` when the changes name more cells than one request may: a new order names each of its cells. */
function requireFewCells(changes: readonly DocumentChange[]): void {
  let named = 0;
  for (const change of changes) named += change.type === 'reorder-cells' ? change.cellIds.length : 1;
  if (named > MAX_NAMED_CELLS)
    throw new ShapeError(
      `the changes name ${named} cells, and those of one request may name ${MAX_NAMED_CELLS}: send them in several requests`,
    );
}

/** Returns the settings of cells as changes; members that the page leaves out stay. */
function configChanges(live: LiveNotebook, configs: Body): DocumentChange[] {
  return Object.entries(configs).flatMap(([cellId, sent]) => {
    const cell = live.view.get(cellId);
    if (cell === undefined || !isRecord(sent)) return [];
    const { hide_code, expand_output, disabled, column } = sent;
    const change: KernelCellConfig = {
      ...(typeof disabled === 'boolean' ? { disabled } : {}),
      ...(typeof hide_code === 'boolean' ? { hideCode: hide_code } : {}),
      ...(typeof expand_output === 'boolean' ? { expandOutput: expand_output } : {}),
      ...(column === null || Number.isSafeInteger(column) ? { column: column as number | null } : {}),
    };
    const { name: _, ...config } = configOf(withConfig(cell.options, change));
    return [{ type: 'set-config', cellId, config }];
  });
}

/** marimo's page asks for the resources of its machine, and the style sheet hides them (`hiddenParts`). */
function usage() {
  const memory = { total: 1, available: 1, percent: 0, used: 0, free: 1, has_cgroup_mem_limit: false };
  return { memory, cpu: { percent: 0 }, server: null, kernel: null, gpu: [] };
}
