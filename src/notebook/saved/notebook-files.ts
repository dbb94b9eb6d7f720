/**
 * Imports notebook files as saved notebooks, and exports saved notebooks as files. A converter reads and writes the files. This
 * module decides the converter's input, and translates its failures for the caller.
 */

import { FairSemaphore } from '#src/base/async/fair-semaphore.ts';
import { inSlices } from '#src/base/async/slices.ts';
import { AppError, notFound } from '#src/base/errors/errors.ts';
import type { WorkspaceId } from '#src/base/ids.ts';
import { cutText } from '#src/base/text/cut-text.ts';
import { encodeUtf8 } from '#src/base/text/utf8.ts';
import type {
  ConversionFailure,
  ConvertRequest,
  ConvertResult,
  PipRequirements,
} from '#src/confined/processes/children/convert.ts';
import type { ImportWarning } from '#src/contract/wire/notebook.ts';
import type { Store } from '#storage/store.ts';
import type { Transaction } from '#storage/transaction.ts';
import { titleOf } from './document.ts';
import { withFrontEndScript } from './exported-page.ts';
import { resultsOf } from './file-results.ts';
import { fileStem } from './file-stem.ts';
import { type ReadPublicFile, withPublicFiles } from './public-files.ts';
import type { SavedNotebooks } from './saved-notebooks.ts';
import { widgetsOf } from './saved-outputs.ts';

export type ReadableFormat = 'py' | 'ipynb' | 'md';
export type WritableFormat = ReadableFormat | 'html';

export interface Converter {
  /** Returns whether a conversion can begin now. */
  isUp(): boolean;
  /** Never rejects. */
  convert(request: ConvertRequest, workspaceId: WorkspaceId): Promise<ConvertResult>;
}

/** A notebook file to import. */
export interface NotebookText {
  readonly format: ReadableFormat;
  readonly content: string;
  /** A title that replaces the title in the file. */
  readonly title?: string | undefined;
  readonly metadata?: Readonly<Record<string, string>> | undefined;
  /**
   * Whether packages that cells of a Jupyter notebook install with pip become dependencies of the notebook.
   */
  readonly install?: boolean | undefined;
}

/** An imported notebook in the form that the API returns, with warnings about the parts that were not imported unchanged. */
export interface ImportOutcome {
  readonly id: string;
  readonly json: Uint8Array;
  readonly warnings: readonly ImportWarning[];
}

/** A notebook file that becomes a new notebook. */
export interface NewNotebookText extends NotebookText {
  /** The notebook whose datasources, variables, metadata and secrets the new notebook gets. */
  readonly settingsFrom?: string | undefined;
}

/** Gives a notebook the secrets of another one. */
export type CopySecrets = (tx: Transaction, workspaceId: WorkspaceId, from: string, to: string) => void;

/** A notebook to replace, and the state of the caller's last read. */
export interface ReplacedNotebook {
  readonly notebookId: string;
  readonly expectedUpdatedAt: string;
}

export interface NotebookFile {
  readonly name: string;
  readonly content: Uint8Array;
}

export interface ExportRequest {
  readonly format: WritableFormat;
  /** The address from which a page loads its front end; undefined means a public address. */
  readonly assetUrl: string | undefined;
  /** Whether an HTML page has the code of the cells; true by default. */
  readonly includeCode?: boolean;
  /** Whether the file has the outputs of the cells, if its format has a place for them; true by default. */
  readonly includeOutputs?: boolean;
}

/** marimo's snippets of code, as its page reads them. */
export interface Snippets {
  readonly snippets: readonly {
    readonly title: string;
    readonly sections: readonly {
      readonly id: string;
      readonly html: string | null;
      readonly code: string | null;
    }[];
  }[];
}

/** The limits of the schema of a notebook. */
const MAX_CELLS = 10_000;
/** The most processes of one worker that read or write files or check the syntax of long code. */
const PARSERS = { width: 4, widthOfKey: 2, queueOfKey: 16 };
/** The most exports at once. A waiting export holds only its request. */
const EXPORTS = { width: 4, widthOfKey: 2, queueOfKey: 64 };
const MAX_MESSAGE_CHARS = 500;

/** Returns the places for processes that parse users' input. Workspaces that wait for a place take turns. */
export function parserPlaces(): FairSemaphore {
  return new FairSemaphore(PARSERS);
}

/** Reads a file of a workspace, as `ReadPublicFile` does. */
export type ReadWorkspaceFile = (
  workspaceId: WorkspaceId,
  ...asked: Parameters<ReadPublicFile>
) => ReturnType<ReadPublicFile>;

export class NotebookFiles {
  readonly #store: Store;
  readonly #notebooks: SavedNotebooks;
  readonly #copySecrets: CopySecrets;
  readonly #converter: Converter;
  readonly #places: FairSemaphore;
  /** The places of whole exports, because an export that waits for a process must not hold its notebook and outputs. */
  readonly #exports = new FairSemaphore(EXPORTS);
  readonly #readFile: ReadWorkspaceFile;
  #snippets: Promise<Snippets> | undefined;

  constructor(
    store: Store,
    notebooks: SavedNotebooks,
    copySecrets: CopySecrets,
    converter: Converter,
    places = parserPlaces(),
    readFile: ReadWorkspaceFile = async () => undefined,
  ) {
    this.#store = store;
    this.#notebooks = notebooks;
    this.#copySecrets = copySecrets;
    this.#converter = converter;
    this.#places = places;
    this.#readFile = readFile;
  }

  /**
   * Creates a notebook from the text of a file. Rejects with `unreadable_notebook`, which says where the file is broken, and with
   * `not_found` when the notebook of `settingsFrom` is missing.
   */
  async import(
    workspaceId: WorkspaceId,
    { settingsFrom, ...file }: NewNotebookText,
    createdBy?: string,
  ): Promise<ImportOutcome> {
    if (settingsFrom === undefined) {
      const { fields, warnings } = await this.#read(workspaceId, file);
      const { document, json } = await this.#notebooks.create(workspaceId, fields, createdBy);
      return { id: document.id, json, warnings };
    }
    if (!this.#notebooks.exists(workspaceId, settingsFrom)) throw notFound(); // before anything is read
    const { fields, warnings } = await this.#read(workspaceId, file);
    this.#store.refreshShared();
    const from = await this.#notebooks.readInSlices(workspaceId, settingsFrom);
    const { datasourceSlugs, variables, metadata = {} } = from;
    const copied = { datasourceSlugs, variables, metadata, ...fields };
    const copySecrets = (tx: Transaction, id: string) => this.#copySecrets(tx, workspaceId, settingsFrom, id);
    const { document, json } = await this.#notebooks.create(workspaceId, copied, createdBy, copySecrets);
    return { id: document.id, json, warnings };
  }

  /**
   * Creates a copy of a saved notebook, with its datasources, variables, metadata and secrets, and resolves with the id of the copy.
   * Rejects with `not_found` when the notebook is missing.
   */
  async duplicate(
    workspaceId: WorkspaceId,
    from: string,
    title: string | null,
    createdBy: string,
  ): Promise<string> {
    if (!this.#notebooks.exists(workspaceId, from)) throw notFound();
    this.#store.refreshShared();
    const saved = await this.#notebooks.readInSlices(workspaceId, from);
    const { serialization, datasourceSlugs, variables, metadata = {} } = saved;
    const fields = { title, serialization, datasourceSlugs, variables, metadata };
    const copySecrets = (tx: Transaction, id: string) => this.#copySecrets(tx, workspaceId, from, id);
    const { document } = await this.#notebooks.create(workspaceId, fields, createdBy, copySecrets);
    return document.id;
  }

  /**
   * Replaces the cells of a notebook by the cells of a file, and resolves with the notebook in the form that the API returns.
   * Rejects with the errors of `import` and of changing a notebook.
   */
  async replace(
    workspaceId: WorkspaceId,
    replaced: ReplacedNotebook,
    file: NotebookText,
    by: string,
  ): Promise<ImportOutcome> {
    const { notebookId, expectedUpdatedAt } = replaced;
    if (!this.#notebooks.exists(workspaceId, notebookId)) throw notFound(); // before anything is read
    const { fields, warnings } = await this.#read(workspaceId, file);
    const change = { expectedUpdatedAt, by, isReplacement: true };
    const { json } = await this.#notebooks.patch(workspaceId, notebookId, fields, change);
    return { id: notebookId, json, warnings };
  }

  async #read(workspaceId: WorkspaceId, file: NotebookText) {
    const { format, content, title, metadata, install = false } = file;
    const request = { direction: 'read', format, content, installs: install } as const;
    const result = await this.#convert(workspaceId, request);
    if (!result.ok) throw unreadable(format, result.error.message);
    const { serialization } = result;
    if (serialization === null) throw new Error('The converter wrote a file when it was to read one.');
    if (serialization.cells.length > MAX_CELLS)
      throw unreadable(format, `it has more than ${MAX_CELLS} cells`);
    const fields = {
      serialization,
      ...(title === undefined ? {} : { title }),
      ...(metadata === undefined ? {} : { metadata }),
    };
    return { fields, warnings: pipWarnings(result.pip, install) };
  }

  /**
   * Returns the saved notebook as a file, with the last outputs of its cells where the format has a
   * place for them.
   */
  export(workspaceId: WorkspaceId, notebookId: string, request: ExportRequest): Promise<NotebookFile> {
    return this.#exports.pass(workspaceId, () => this.#export(workspaceId, notebookId, request));
  }

  async #export(
    workspaceId: WorkspaceId,
    notebookId: string,
    { format, assetUrl, includeCode = true, includeOutputs = true }: ExportRequest,
  ): Promise<NotebookFile> {
    const { id, serialization } = await this.#notebooks.readInSlices(workspaceId, notebookId);
    const stem = fileStem(titleOf(serialization)) ?? id;
    const saved =
      includeOutputs && (format === 'ipynb' || format === 'html')
        ? await inSlices(resultsOf(this.#store, workspaceId, id, serialization.cells), workspaceId)
        : undefined;
    const results =
      saved !== undefined && format === 'html'
        ? await withPublicFiles(saved, workspaceId, (...asked) => this.#readFile(workspaceId, ...asked))
        : saved;
    const widgets = includeOutputs && format === 'html' ? widgetsOf(this.#store, workspaceId, id) : undefined;
    const result = await this.#convert(workspaceId, {
      direction: 'write',
      format,
      serialization: { ...serialization },
      title: stem,
      ...(results === undefined ? {} : { results }),
      ...(widgets === undefined ? {} : { widgets }),
      ...(assetUrl === undefined ? {} : { assetUrl }),
      ...(includeCode ? {} : { includeCode }),
    });
    if (!result.ok) throw new AppError('unwritable_notebook', sentence(result.error.message));
    if (result.content === null) throw new Error('The converter read a file when it was to write one.');
    const content = assetUrl === undefined ? result.content : withFrontEndScript(result.content, assetUrl);
    return { name: `${stem}.${format}`, content: await inSlices(encodeUtf8(content), workspaceId) };
  }

  /** Resolves with the snippets of marimo's package. Rejects with `unavailable`. */
  snippets(workspaceId: WorkspaceId): Promise<Snippets> {
    // The snippets are files of an installed package, so all readers share the answer to the first one.
    this.#snippets ??= this.#readSnippets(workspaceId).catch((error: unknown) => {
      this.#snippets = undefined;
      throw error;
    });
    return this.#snippets;
  }

  async #readSnippets(workspaceId: WorkspaceId): Promise<Snippets> {
    const result = await this.#convert(workspaceId, { direction: 'list', format: 'snippets' });
    if (!result.ok) throw new Error(`The snippets of marimo were not read: ${result.error.message}`);
    return JSON.parse(result.content ?? '') as Snippets;
  }

  async #convert(workspaceId: WorkspaceId, request: ConvertRequest): Promise<ConvertResult> {
    const result = await this.#places.pass(workspaceId, async () => {
      if (!this.#converter.isUp()) throw hostGone();
      return this.#converter.convert(request, workspaceId);
    });
    if (!result.ok && isOfHost(result.error, this.#converter)) throw hostGone();
    return result;
  }
}

/** Returns warnings for packages that cells ask pip for, which an import does not install. */
function pipWarnings(pip: PipRequirements | null, isInstalled: boolean): ImportWarning[] {
  const { requirements = [], others = [] } = pip ?? {};
  return [
    ...(requirements.length === 0 || isInstalled
      ? []
      : [
          {
            code: 'packages_not_installed' as const,
            message: `Cells ask pip for ${requirements.join(', ')}. An import installs nothing unless \`install\` is true.`,
          },
        ]),
    ...(others.length === 0
      ? []
      : [
          {
            code: 'pip_not_understood' as const,
            message: `These parts of pip commands in cells do not name a package, and have no effect: ${others.join(', ')}.`,
          },
        ]),
  ];
}

/** Returns whether a conversion failed because its host ended, and not because of the file. */
function isOfHost({ code }: ConversionFailure, converter: Converter): boolean {
  return code === 'kernel_host_failed' || (code === 'conversion_failed' && !converter.isUp());
}

function hostGone(): AppError {
  const extras = { headers: { 'retry-after': '2' } };
  return new AppError('unavailable', 'The process that reads and writes notebook files is starting.', extras);
}

function unreadable(format: ReadableFormat, reason: string): AppError {
  const message = sentence(reason);
  return new AppError('unreadable_notebook', `Not readable as .${format}: ${message}`, {
    errors: [{ path: '/content', message }],
  });
}

function sentence(text: string): string {
  const line = cutText(text.replace(/\s+/g, ' ').trim(), 0, MAX_MESSAGE_CHARS);
  return /[.!?]$/.test(line) ? line : `${line}.`;
}
