/**
 * Notebook files: a saved notebook made from one, or written as one. A converter reads and writes; this decides its
 * input and the meaning of its failures for the caller.
 */

import type { ConversionFailure, ConvertRequest, ConvertResult } from '#src/confined/children/convert.ts';
import { AppError, notFound } from '#src/core/errors.ts';
import type { WorkspaceId } from '#src/core/ids.ts';
import { Semaphore } from '#src/core/semaphore.ts';
import { inSlices } from '#src/core/slices.ts';
import { encodeUtf8 } from '#src/core/utf8.ts';
import type { Store } from '#storage/store.ts';
import { type NotebookDocument, titleOf } from './document.ts';
import { resultsOf } from './file-results.ts';
import { fileStem } from './file-stem.ts';
import type { SavedNotebooks } from './saved-notebooks.ts';

export type ReadableFormat = 'py' | 'ipynb' | 'md';
export type WritableFormat = ReadableFormat | 'html';

export interface Converter {
  /** Whether a conversion can begin now. */
  isUp(): boolean;
  /** Never rejects. */
  convert(request: ConvertRequest): Promise<ConvertResult>;
}

/** A notebook file to import. */
export interface NotebookText {
  readonly format: ReadableFormat;
  readonly content: string;
  /** The title to use in place of the one in the file. */
  readonly title?: string | undefined;
}

/** A notebook, as it was last read. */
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
  /** The address of a page's front end; without it, a public one. */
  readonly assetUrl: string | undefined;
}

/** The limits of the schema of a notebook. */
const MAX_CELLS = 10_000;
const AT_ONCE = 4;
const MAX_WAITING = 16;
const MAX_MESSAGE_CHARS = 500;

export class NotebookFiles {
  readonly #store: Store;
  readonly #notebooks: SavedNotebooks;
  readonly #converter: Converter;
  readonly #semaphore = new Semaphore(AT_ONCE, MAX_WAITING);

  constructor(store: Store, notebooks: SavedNotebooks, converter: Converter) {
    this.#store = store;
    this.#notebooks = notebooks;
    this.#converter = converter;
  }

  /** A new notebook from the text of a file. Throws `unreadable_notebook`, which says where the file is broken. */
  async import(
    workspaceId: WorkspaceId,
    file: NotebookText,
    createdBy?: string,
  ): Promise<{ document: NotebookDocument; json: Uint8Array }> {
    return this.#notebooks.create(workspaceId, await this.#read(file), createdBy);
  }

  /**
   * Replaces the cells of a notebook by those of a file, and resolves with the notebook as it is served. Throws as `import`
   * and as changing a notebook do.
   */
  async replace(
    workspaceId: WorkspaceId,
    replaced: ReplacedNotebook,
    file: NotebookText,
  ): Promise<Uint8Array> {
    const { notebookId, expectedUpdatedAt } = replaced;
    if (!this.#notebooks.exists(workspaceId, notebookId)) throw notFound(); // before anything is read
    const fields = await this.#read(file);
    return (await this.#notebooks.patch(workspaceId, notebookId, expectedUpdatedAt, fields)).json;
  }

  async #read({ format, content, title }: NotebookText) {
    const result = await this.#convert({ direction: 'read', format, content });
    if (!result.ok) throw unreadable(format, result.error.message);
    const { serialization } = result;
    if (serialization === null) throw new Error('The converter wrote a file when it was to read one.');
    if (serialization.cells.length > MAX_CELLS)
      throw unreadable(format, `it has more than ${MAX_CELLS} cells`);
    return { serialization, ...(title === undefined ? {} : { title }) };
  }

  /** The saved notebook as a file, with the last outputs of its cells where the format has a place for them. */
  async export(
    workspaceId: WorkspaceId,
    notebookId: string,
    { format, assetUrl }: ExportRequest,
  ): Promise<NotebookFile> {
    const { id, serialization } = await this.#notebooks.readInSlices(workspaceId, notebookId);
    const stem = fileStem(titleOf(serialization)) ?? id;
    const results =
      format === 'ipynb' || format === 'html'
        ? await inSlices(resultsOf(this.#store, workspaceId, id, serialization.cells))
        : undefined;
    const result = await this.#convert({
      direction: 'write',
      format,
      serialization: { ...serialization },
      title: stem,
      ...(results === undefined ? {} : { results }),
      ...(assetUrl === undefined ? {} : { assetUrl }),
    });
    if (!result.ok) throw new AppError('unwritable_notebook', sentence(result.error.message));
    if (result.content === null) throw new Error('The converter read a file when it was to write one.');
    return { name: `${stem}.${format}`, content: await inSlices(encodeUtf8(result.content)) };
  }

  async #convert(request: ConvertRequest): Promise<ConvertResult> {
    const result = await this.#semaphore.pass(async () => {
      if (!this.#converter.isUp()) throw hostGone();
      return this.#converter.convert(request);
    });
    if (!result.ok && isOfHost(result.error, this.#converter)) throw hostGone();
    return result;
  }
}

/** A conversion that broke off while its host went down is not the file's fault. */
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
  const line = text.replace(/\s+/g, ' ').trim().slice(0, MAX_MESSAGE_CHARS);
  return /[.!?]$/.test(line) ? line : `${line}.`;
}
