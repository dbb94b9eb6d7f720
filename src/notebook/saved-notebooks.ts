/** Saved notebooks: created, read, listed, changed in parts, deleted. A port refuses changes while a session is open. */
import { isSameInstant, timestamp, timestampAfter } from '#src/core/clock.ts';
import { AppError, notFound } from '#src/core/errors.ts';
import { isIdOf, type NotebookId, newId, timeOfId, type WorkspaceId } from '#src/core/ids.ts';
import { parseTrustedJson } from '#src/core/json/json-parse.ts';
import { isShortJson, writeJson } from '#src/core/json/json-write.ts';
import { atOnce, inSlices } from '#src/core/slices.ts';
import { type EncodedRecord, encodeRecord } from '#storage/codec.ts';
import { type CreationTimes, checkCursor, idBounds, type PageRequest, pageOf } from '#storage/listing.ts';
import {
  type NotebookRecord,
  type NotebookSummaryRecord,
  notebookRecords,
  notebookSummaries,
} from '#storage/notebooks.ts';
import { type JsonPage, slicedJsonPage } from '#storage/sliced-listing.ts';
import type { Store, Transaction } from '#storage/store.ts';
import {
  type NotebookDocument,
  normalizeSerialization,
  type SavedCell,
  type SerializationInput,
  titleOf,
  withTitle,
} from './document.ts';
import { titleFilter } from './title-filter.ts';

export interface NotebookFields {
  /** Null removes it. It is stored with the app options of the serialization. */
  readonly title?: string | null;
  readonly serialization?: SerializationInput;
  readonly datasourceSlugs?: readonly string[];
  readonly variables?: Readonly<Record<string, string>>;
}

/** Which notebooks of a workspace to list. Absent members filter nothing. */
export interface NotebookQuery extends PageRequest, CreationTimes {
  /** A part of the title, in any case. */
  readonly title?: string | undefined;
}

/** Throws `session_open` while a session is open on the notebook, whether it is in memory or not. */
export type RefuseWhileOpen = (workspaceId: WorkspaceId, notebookId: string) => void;

/** Whether all of some code parses; at once when that is known. */
export type AllParse = (codes: readonly string[]) => boolean | Promise<boolean>;

/** Throws when the notebook, which last changed then, is not in the state that a request asks for. */
export type StateCheck = (updatedAt: string) => void;

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
    const id = newId<NotebookId>('notebook');
    const now = timestamp(timeOfId(id)); // so that the order of ids is the order of times
    const serialization = withTitle(normalizeSerialization(fields.serialization ?? {}, valid), fields.title);
    const document: NotebookDocument = {
      id,
      createdAt: now,
      updatedAt: now,
      serialization,
      datasourceSlugs: fields.datasourceSlugs ?? [],
      variables: fields.variables ?? {},
    };
    const encoded = isSmall(fields) ? atOnce(encode(document)) : await inSlices(encode(document));
    this.#store.write((tx) => put(tx, workspaceId, encoded));
    return { document, json: encoded.json };
  }

  exists(workspaceId: WorkspaceId, notebookId: string): boolean {
    return this.#store.get(notebookSummaries, workspaceId, notebookId) !== undefined;
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
    return atOnce(decode(this.json(workspaceId, notebookId)));
  }

  /** Resolves with what `read` returns, without holding anybody up. */
  readInSlices(workspaceId: WorkspaceId, notebookId: string): Promise<NotebookDocument> {
    return inSlices(decode(this.json(workspaceId, notebookId)));
  }

  /** The cells of a notebook; none when it was deleted. */
  cells(workspaceId: WorkspaceId, notebookId: string): readonly SavedCell[] {
    const record = this.#store.get(notebookRecords, workspaceId, notebookId);
    return record === undefined ? [] : atOnce(decode(record.document)).serialization.cells;
  }

  /** Resolves with a page of summaries in the order in which the notebooks were created. Rejects with `invalid_cursor`. */
  async list(workspaceId: WorkspaceId, query: NotebookQuery): Promise<JsonPage> {
    checkCursor(query.after, (text) => isIdOf('notebook', text));
    const bounds = idBounds('notebook', query);
    const isWanted = titleFilter(query.title);
    return slicedJsonPage(this.#store, {
      page: query,
      entriesAfter: (after) =>
        this.#store.list(notebookSummaries, workspaceId, [], pageOf({ ...query, after }, bounds)),
      itemOf: ({ title, summary }) => (isWanted(title) ? summary : undefined),
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
    checkState: StateCheck = () => {},
  ): Promise<ServedNotebook> {
    const valid = await this.#parses(fields);
    const before = this.served(workspaceId, notebookId);
    const check = (updatedAt: string) => {
      this.#refuseWhileOpen(workspaceId, notebookId);
      checkState(updatedAt);
      if (!isSameInstant(updatedAt, expectedUpdatedAt)) throw staleUpdate(updatedAt);
    };
    check(before.updatedAt);
    const steps = changed(before, fields, valid);
    const isSmallChange = isSmall(fields) && before.json.byteLength <= MAX_BYTES_AT_ONCE;
    const encoded = isSmallChange ? atOnce(steps) : await inSlices(steps);
    return this.#store.write((tx) => {
      if (!isSmallChange) {
        const updatedAt = this.#updatedAt(workspaceId, notebookId);
        if (updatedAt === undefined) throw notFound();
        check(updatedAt);
        if (updatedAt !== before.updatedAt) throw staleUpdate(updatedAt);
      }
      put(tx, workspaceId, encoded);
      return { json: encoded.json, updatedAt: encoded.document.updatedAt };
    });
  }

  /** Saves what a live session has made of the document. */
  save(workspaceId: WorkspaceId, document: NotebookDocument): NotebookDocument {
    return this.#store.write((tx) => {
      const saved = { ...document, updatedAt: timestampAfter(this.#updatedAt(workspaceId, document.id)) };
      put(tx, workspaceId, atOnce(encode(saved)));
      return saved;
    });
  }

  /** Throws `not_found`, `session_open`, or what `checkState` throws, when the notebook may not be deleted. */
  checkDeletion(workspaceId: WorkspaceId, notebookId: string, checkState: StateCheck): void {
    const updatedAt = this.#updatedAt(workspaceId, notebookId);
    if (updatedAt === undefined) throw notFound();
    this.#refuseWhileOpen(workspaceId, notebookId);
    checkState(updatedAt);
  }

  /** Returns when the notebook last changed, from what is small of it; undefined when it is deleted. */
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

/** A larger notebook is read and written in slices. */
const MAX_BYTES_AT_ONCE = 256 * 1024;

function isSmall(fields: NotebookFields): boolean {
  return isShortJson(fields, MAX_BYTES_AT_ONCE);
}

function staleUpdate(updatedAt: string): AppError {
  const detail = `The notebook was last updated at ${updatedAt}. Reload it first.`;
  return new AppError('stale_update', detail, { members: { updatedAt } });
}

/** Returns the notebook with the given parts replaced, and its JSON. */
function* changed(
  before: ServedNotebook,
  fields: NotebookFields,
  valid: boolean,
): Generator<undefined, EncodedNotebook> {
  const current = yield* decode(before.json);
  const { serialization, datasourceSlugs, variables, title } = fields;
  const document = {
    ...current,
    updatedAt: timestampAfter(before.updatedAt),
    serialization: withTitle(
      serialization === undefined ? current.serialization : normalizeSerialization(serialization, valid),
      title,
    ),
    datasourceSlugs: datasourceSlugs ?? current.datasourceSlugs,
    variables: variables ?? current.variables,
  };
  return yield* encode(document);
}

/** A notebook, and how it is stored and served. */
interface EncodedNotebook {
  readonly document: NotebookDocument;
  readonly json: Uint8Array;
  readonly record: EncodedRecord<NotebookRecord>;
}

function put(tx: Transaction, workspaceId: WorkspaceId, { document, record }: EncodedNotebook): void {
  tx.putEncoded(record, workspaceId, document.id);
  tx.put(notebookSummaries, summaryOf(document), workspaceId, document.id);
}

function* encode(document: NotebookDocument): Generator<undefined, EncodedNotebook> {
  const pieces = yield* writeJson({ ...document, title: titleOf(document.serialization) });
  yield;
  const json = Buffer.concat(pieces);
  yield;
  const { updatedAt } = document;
  const bytes = encodeRecord(notebookRecords, { updatedAt, document: json });
  return { document, json, record: { kind: notebookRecords, bytes } };
}

function* decode(json: Uint8Array): Generator<undefined, NotebookDocument> {
  return (yield* parseTrustedJson(json)) as NotebookDocument;
}

/** Returns what lists show of a notebook. */
function summaryOf(notebook: NotebookDocument): NotebookSummaryRecord {
  const { id, createdAt, updatedAt, serialization, datasourceSlugs } = notebook;
  const title = titleOf(serialization);
  const cellCount = serialization.cells.length;
  const summary = { id, title, cellCount, datasourceSlugs, createdAt, updatedAt };
  return { title, summary: Buffer.from(JSON.stringify(summary)) };
}
