/** Saved notebooks: created, read, listed, changed in parts, deleted. A port refuses changes while a session is open. */
import { timestampAfter } from '#src/core/clock.ts';
import { AppError, notFound } from '#src/core/errors.ts';
import { type NotebookId, newId, type WorkspaceId } from '#src/core/ids.ts';
import { type JsonPage, jsonPageOf } from '#storage/listing.ts';
import { type NotebookRecord, notebookRecords } from '#storage/notebooks.ts';
import type { Store, Transaction } from '#storage/store.ts';
import {
  type NotebookDocument,
  normalizeSerialization,
  type SavedCell,
  type SerializationInput,
  titleOf,
} from './document.ts';
import { removeOutputs } from './saved-outputs.ts';

export interface NotebookFields {
  readonly serialization?: SerializationInput;
  readonly datasourceSlugs?: readonly string[];
  readonly variables?: Readonly<Record<string, string>>;
}

/** Throws `session_open` while a session is open on the notebook, whether it is in memory or not. */
export type RefuseWhileOpen = (workspaceId: WorkspaceId, notebookId: string) => void;

/** Whether all of some code parses; at once when that is known. */
export type AllParse = (codes: readonly string[]) => boolean | Promise<boolean>;

export interface SavedNotebooksOptions {
  readonly store: Store;
  readonly refuseWhileOpen: RefuseWhileOpen;
  readonly allParse: AllParse;
}

export class SavedNotebooks {
  readonly #store: Store;
  readonly #refuseWhileOpen: RefuseWhileOpen;
  readonly #allParse: AllParse;

  constructor({ store, refuseWhileOpen, allParse }: SavedNotebooksOptions) {
    this.#store = store;
    this.#refuseWhileOpen = refuseWhileOpen;
    this.#allParse = allParse;
  }

  /** Throws `duplicate_cell`. */
  async create(
    workspaceId: WorkspaceId,
    fields: NotebookFields,
  ): Promise<{ document: NotebookDocument; json: Uint8Array }> {
    const valid = await this.#parses(fields);
    const now = timestampAfter(undefined);
    const document: NotebookDocument = {
      id: newId<NotebookId>('notebook'),
      createdAt: now,
      updatedAt: now,
      serialization: normalizeSerialization(fields.serialization ?? {}, valid),
      datasourceSlugs: fields.datasourceSlugs ?? [],
      variables: fields.variables ?? {},
    };
    const json = this.#store.write((tx) => put(tx, workspaceId, document));
    return { document, json };
  }

  exists(workspaceId: WorkspaceId, notebookId: string): boolean {
    return this.#store.get(notebookRecords, workspaceId, notebookId) !== undefined;
  }

  /** The notebook as it is served. Throws `not_found`. */
  json(workspaceId: WorkspaceId, notebookId: string): Uint8Array {
    const record = this.#store.get(notebookRecords, workspaceId, notebookId);
    if (record === undefined) throw notFound();
    return record.document;
  }

  read(workspaceId: WorkspaceId, notebookId: string): NotebookDocument {
    return parse(this.json(workspaceId, notebookId));
  }

  /** The cells of a notebook; none when it was deleted. */
  cells(workspaceId: WorkspaceId, notebookId: string): readonly SavedCell[] {
    const record = this.#store.get(notebookRecords, workspaceId, notebookId);
    return record === undefined ? [] : parse(record.document).serialization.cells;
  }

  /** Summaries, oldest first. */
  list(workspaceId: WorkspaceId, after: string | undefined, limit: number): JsonPage {
    if (after !== undefined && this.#store.get(notebookRecords, workspaceId, after) === undefined) {
      throw new AppError('invalid_cursor', `There is no notebook ${after} in this workspace.`);
    }
    return jsonPageOf(
      this.#store.list(notebookRecords, workspaceId, [], { after, limit: limit + 1 }),
      limit,
      ({ summary }) => summary,
    );
  }

  /**
   * Replaces the given parts, when the notebook is still the one that was read and no session is open on it: then the
   * live session owns the document.
   */
  async patch(
    workspaceId: WorkspaceId,
    notebookId: string,
    expectedUpdatedAt: string,
    fields: NotebookFields,
  ): Promise<Uint8Array> {
    const valid = await this.#parses(fields);
    return this.#store.write((tx) => {
      const record = tx.get(notebookRecords, workspaceId, notebookId);
      if (record === undefined) throw notFound();
      this.#refuseWhileOpen(workspaceId, notebookId);
      if (record.updatedAt !== expectedUpdatedAt) {
        throw new AppError(
          'stale_update',
          `The notebook was last updated at ${record.updatedAt}. Reload it first.`,
          {
            members: { updatedAt: record.updatedAt },
          },
        );
      }
      const current = parse(record.document);
      return put(tx, workspaceId, {
        ...current,
        updatedAt: timestampAfter(record.updatedAt),
        serialization:
          fields.serialization === undefined
            ? current.serialization
            : normalizeSerialization(fields.serialization, valid),
        datasourceSlugs: fields.datasourceSlugs ?? current.datasourceSlugs,
        variables: fields.variables ?? current.variables,
      });
    });
  }

  /** Saves what a live session has made of the document. */
  save(workspaceId: WorkspaceId, document: NotebookDocument): NotebookDocument {
    return this.#store.write((tx) => {
      const record = tx.get(notebookRecords, workspaceId, document.id);
      const saved = { ...document, updatedAt: timestampAfter(record?.updatedAt) };
      put(tx, workspaceId, saved);
      return saved;
    });
  }

  /** Removes the saved notebook and the last outputs of its cells. Runs stay: they are history. */
  delete(workspaceId: WorkspaceId, notebookId: string): void {
    this.#store.write((tx) => {
      const record = tx.get(notebookRecords, workspaceId, notebookId);
      if (record === undefined) throw notFound();
      this.#refuseWhileOpen(workspaceId, notebookId);
      tx.remove(notebookRecords, workspaceId, notebookId);
      removeOutputs(this.#store, tx, workspaceId, notebookId, parse(record.document).serialization.cells);
    });
  }

  #parses({ serialization }: NotebookFields): boolean | Promise<boolean> {
    return this.#allParse((serialization?.cells ?? []).map((cell) => cell.code));
  }
}

function put(tx: Transaction, workspaceId: WorkspaceId, notebook: NotebookDocument): Uint8Array {
  const { id, createdAt, updatedAt, serialization, datasourceSlugs } = notebook;
  const summary = {
    id,
    title: titleOf(serialization),
    cellCount: serialization.cells.length,
    datasourceSlugs,
    createdAt,
    updatedAt,
  };
  const record: NotebookRecord = {
    updatedAt,
    summary: Buffer.from(JSON.stringify(summary)),
    document: Buffer.from(JSON.stringify(notebook)),
  };
  tx.put(notebookRecords, record, workspaceId, id);
  return record.document;
}

function parse(json: Uint8Array): NotebookDocument {
  return JSON.parse(
    Buffer.from(json.buffer, json.byteOffset, json.byteLength).toString('utf8'),
  ) as NotebookDocument;
}
