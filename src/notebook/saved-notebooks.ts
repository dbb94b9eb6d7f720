/** Saved notebooks: created, read, listed, changed in parts, deleted. A port refuses changes while a session is open. */

import { isSameInstant, timestamp, timestampAfter } from '#src/core/clock.ts';
import { AppError, notFound } from '#src/core/errors.ts';
import { isIdOf, type NotebookId, newId, timeOfId, type WorkspaceId } from '#src/core/ids.ts';
import { isShortJson } from '#src/core/json/json-write.ts';
import { metadataFilter, shownMetadata } from '#src/core/metadata-filter.ts';
import type { StateCheck } from '#src/core/refusals.ts';
import { atOnce, inSlices, MAX_SIZE_AT_ONCE } from '#src/core/slices.ts';
import type { NotebookFilters } from '#src/wire/lists.ts';
import type { Cell, NotebookFields } from '#src/wire/notebook.ts';
import { checkCursor, idBounds, type PageRequest, pageOf } from '#storage/lists/listing.ts';
import { type JsonPage, slicedJsonPage } from '#storage/lists/sliced-listing.ts';
import { workspaceExists } from '#storage/records/identity.ts';
import { notebookRecords, notebookSummaries } from '#storage/records/notebooks.ts';
import type { Store } from '#storage/store.ts';
import type { Transaction } from '#storage/transaction.ts';
import { type NotebookDocument, normalizeSerialization, withTitle } from './document.ts';
import { NewNotebooks } from './new-notebooks.ts';
import {
  decodeNotebook,
  decodePrepared,
  type EncodedNotebook,
  encodeNotebook,
  putNotebook,
} from './notebook-encoding.ts';
import { titleFilter } from './title-filter.ts';

/** Which notebooks of a workspace to list. Absent members filter nothing. */
export type NotebookQuery = PageRequest & NotebookFilters;

/** Throws `session_open` while a session is open on the notebook, whether it is in memory or not. */
export type RefuseWhileOpen = (workspaceId: WorkspaceId, notebookId: string) => void;

/** Whether all of some code parses; at once when that is known. */
export type AllParse = (codes: readonly string[]) => boolean | Promise<boolean>;

export interface ServedNotebook {
  readonly json: Uint8Array;
  readonly updatedAt: string;
}

export interface SavedNotebooksOptions {
  readonly store: Store;
  readonly refuseWhileOpen: RefuseWhileOpen;
  readonly allParse: AllParse;
}

export class SavedNotebooks {
  readonly #store: Store;
  readonly #refuseWhileOpen: RefuseWhileOpen;
  readonly #allParse: AllParse;
  readonly #new = new NewNotebooks();
  /** Large notebooks that are about to be read. */
  readonly #prepared = new Map<string, NotebookDocument>();

  constructor({ store, refuseWhileOpen, allParse }: SavedNotebooksOptions) {
    this.#store = store;
    this.#refuseWhileOpen = refuseWhileOpen;
    this.#allParse = allParse;
  }

  /** Creates a notebook, in the name of a user. Throws `duplicate_cell`, and `not_found` when the workspace has been deleted meanwhile. */
  async create(
    workspaceId: WorkspaceId,
    fields: NotebookFields,
    createdBy?: string,
  ): Promise<{ document: NotebookDocument; json: Uint8Array }> {
    const valid = await this.#parses(fields);
    const make = () => newDocument(fields, valid, createdBy);
    const { document, json } = await this.#new.create(workspaceId, isSmall(fields), make, (encoded) => {
      if (!workspaceExists(this.#store, workspaceId)) throw notFound();
      this.#store.write((tx) => putNotebook(tx, workspaceId, encoded));
    });
    return { document, json };
  }

  /** Returns whether there is such a notebook. A workspace that was deleted has none, though they may be there still. */
  exists(workspaceId: WorkspaceId, notebookId: string): boolean {
    return (
      this.#store.has(notebookSummaries, workspaceId, notebookId) && workspaceExists(this.#store, workspaceId)
    );
  }

  /** The notebook as it is served, and when it last changed. Throws `not_found`. */
  served(workspaceId: WorkspaceId, notebookId: string): ServedNotebook {
    const record = this.#store.get(notebookRecords, workspaceId, notebookId);
    if (record === undefined) throw notFound();
    return { json: record.document, updatedAt: record.updatedAt };
  }

  json(workspaceId: WorkspaceId, notebookId: string): Uint8Array {
    return this.served(workspaceId, notebookId).json;
  }

  read(workspaceId: WorkspaceId, notebookId: string): NotebookDocument {
    const document = this.#find(workspaceId, notebookId);
    if (document === undefined) throw notFound();
    return document;
  }

  /**
   * Parses a large notebook in slices for `read`, which has it for a second after the promise has resolved. Returns undefined
   * when there is nothing to wait for.
   */
  prepare(workspaceId: WorkspaceId, notebookId: string): Promise<void> | undefined {
    const record = this.#store.get(notebookRecords, workspaceId, notebookId);
    if (record === undefined || record.document.byteLength <= MAX_SIZE_AT_ONCE) return undefined;
    return inSlices(decodePrepared(record.document)).then((document) => {
      const key = placeOf(workspaceId, notebookId);
      this.#prepared.set(key, document);
      const forget = () => {
        if (this.#prepared.get(key) === document) this.#prepared.delete(key);
      };
      setTimeout(forget, PREPARED_MS).unref();
    });
  }

  /** Resolves with the result of `read`, in slices that delay no other request. */
  readInSlices(workspaceId: WorkspaceId, notebookId: string): Promise<NotebookDocument> {
    return inSlices(decodePrepared(this.json(workspaceId, notebookId)));
  }

  /** The cells of a notebook; none when it was deleted. */
  cells(workspaceId: WorkspaceId, notebookId: string): readonly Cell[] {
    return this.#find(workspaceId, notebookId)?.serialization.cells ?? [];
  }

  #find(workspaceId: WorkspaceId, notebookId: string): NotebookDocument | undefined {
    const prepared = this.#prepared.get(placeOf(workspaceId, notebookId));
    if (prepared !== undefined && prepared.updatedAt === this.#updatedAt(workspaceId, notebookId))
      return prepared;
    const record = this.#store.get(notebookRecords, workspaceId, notebookId);
    return record && atOnce(decodeNotebook(record.document));
  }

  /** Resolves with a page of summaries in the order in which the notebooks were created. Rejects with `invalid_cursor`. */
  async list(workspaceId: WorkspaceId, query: NotebookQuery): Promise<JsonPage> {
    checkCursor(query.after, (text) => isIdOf('notebook', text));
    const bounds = idBounds('notebook', query);
    const isWanted = titleFilter(query.title);
    const hasPair = metadataFilter(query.metadata);
    return slicedJsonPage(this.#store, {
      page: query,
      entriesAfter: (after) =>
        this.#store.list(notebookSummaries, workspaceId, [], pageOf({ ...query, after }, bounds)),
      itemOf: ({ title, metadata, summary }) => (isWanted(title) && hasPair(metadata) ? summary : undefined),
    });
  }

  /** Returns the title of a notebook; null when it has none, or is deleted. */
  title(workspaceId: WorkspaceId, notebookId: string): string | null {
    return this.#store.get(notebookSummaries, workspaceId, notebookId)?.title ?? null;
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
    checkState: StateCheck<string> = () => {},
  ): Promise<ServedNotebook> {
    const valid = await this.#parses(fields);
    const before = this.served(workspaceId, notebookId);
    const check = (updatedAt: string) => {
      if (!workspaceExists(this.#store, workspaceId)) throw notFound();
      this.#refuseWhileOpen(workspaceId, notebookId);
      checkState(updatedAt);
      if (!isSameInstant(updatedAt, expectedUpdatedAt)) throw staleUpdate(updatedAt);
    };
    check(before.updatedAt);
    const steps = changed(before, fields, valid);
    const isSmallChange = isSmall(fields) && before.json.byteLength <= MAX_SIZE_AT_ONCE;
    const encoded = isSmallChange ? atOnce(steps) : await inSlices(steps);
    return this.#store.write((tx) => {
      if (!isSmallChange) {
        const updatedAt = this.#updatedAt(workspaceId, notebookId);
        if (updatedAt === undefined) throw notFound();
        check(updatedAt);
        if (updatedAt !== before.updatedAt) throw staleUpdate(updatedAt);
      }
      putNotebook(tx, workspaceId, encoded);
      return { json: encoded.json, updatedAt: encoded.document.updatedAt };
    });
  }

  /** Saves the document of a live session. */
  save(workspaceId: WorkspaceId, document: NotebookDocument): NotebookDocument {
    return this.#store.write((tx) => {
      const saved = { ...document, updatedAt: timestampAfter(this.#updatedAt(workspaceId, document.id)) };
      putNotebook(tx, workspaceId, atOnce(encodeNotebook(saved)));
      return saved;
    });
  }

  /** Throws `not_found`, `session_open`, or the error of `checkState`, when the notebook may not be deleted. */
  checkDeletion(workspaceId: WorkspaceId, notebookId: string, checkState: StateCheck<string>): void {
    const updatedAt = this.#updatedAt(workspaceId, notebookId);
    if (updatedAt === undefined) throw notFound();
    this.#refuseWhileOpen(workspaceId, notebookId);
    checkState(updatedAt);
  }

  /** Returns when the notebook last changed, from its small part; undefined when it is deleted. */
  #updatedAt(workspaceId: WorkspaceId, notebookId: string): string | undefined {
    const record = this.#store.get(notebookSummaries, workspaceId, notebookId);
    if (record === undefined) return undefined;
    const { updatedAt } = JSON.parse(Buffer.from(record.summary).toString('utf8')) as { updatedAt: string };
    return updatedAt;
  }

  /** Removes the notebook itself, so that nobody finds it any more. */
  erase(tx: Transaction, workspaceId: WorkspaceId, notebookId: string): void {
    tx.remove(notebookRecords, workspaceId, notebookId);
    tx.remove(notebookSummaries, workspaceId, notebookId);
  }

  #parses({ serialization }: NotebookFields): boolean | Promise<boolean> {
    return this.#allParse((serialization?.cells ?? []).map((cell) => cell.code));
  }
}

/** Long enough for a decision that waits for its turn among several workers. */
const PREPARED_MS = 1000;

function isSmall(fields: NotebookFields): boolean {
  return isShortJson(fields, MAX_SIZE_AT_ONCE);
}

function staleUpdate(updatedAt: string): AppError {
  const detail = `The notebook was last updated at ${updatedAt}. Reload it first.`;
  return new AppError('stale_update', detail, { members: { updatedAt } });
}

/** Returns a notebook with a new id. */
function newDocument(
  fields: NotebookFields,
  valid: boolean,
  createdBy: string | undefined,
): NotebookDocument {
  const id = newId<NotebookId>('notebook');
  const now = timestamp(timeOfId(id)); // so that the order of ids is the order of times
  return {
    id,
    ...(createdBy === undefined ? {} : { createdBy }),
    createdAt: now,
    updatedAt: now,
    serialization: withTitle(normalizeSerialization(fields.serialization ?? {}, valid), fields.title),
    datasourceSlugs: fields.datasourceSlugs ?? [],
    variables: fields.variables ?? {},
    ...shownMetadata(fields.metadata),
  };
}

/** Returns the notebook with the given parts replaced, and its JSON. */
function* changed(
  before: ServedNotebook,
  fields: NotebookFields,
  valid: boolean,
): Generator<undefined, EncodedNotebook> {
  const current = yield* decodeNotebook(before.json);
  const { serialization, datasourceSlugs, variables, title } = fields;
  const { metadata, ...others } = current;
  const document = {
    ...others,
    updatedAt: timestampAfter(before.updatedAt),
    serialization: withTitle(
      serialization === undefined ? current.serialization : normalizeSerialization(serialization, valid),
      title,
    ),
    datasourceSlugs: datasourceSlugs ?? current.datasourceSlugs,
    variables: variables ?? current.variables,
    ...shownMetadata(fields.metadata ?? metadata),
  };
  return yield* encodeNotebook(document);
}

function placeOf(workspaceId: WorkspaceId, notebookId: string): string {
  return `${workspaceId}/${notebookId}`;
}
