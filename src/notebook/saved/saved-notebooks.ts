/** Creates, reads, lists, changes and deletes saved notebooks. A port refuses changes while a session is open. */

import { FairSemaphore } from '#src/base/async/fair-semaphore.ts';
import { atOnce, inSlices, MAX_SIZE_AT_ONCE } from '#src/base/async/slices.ts';
import { AppError, notFound } from '#src/base/errors/errors.ts';
import type { StateCheck } from '#src/base/errors/refusals.ts';
import { isIdOf, type NotebookId, newId, timeOfId, type WorkspaceId } from '#src/base/ids.ts';
import { isShortJson } from '#src/base/json/json-write.ts';
import { type NotebookUrl, withUrl } from '#src/base/json/notebook-url.ts';
import { metadataFilter, shownMetadata } from '#src/base/metadata-filter.ts';
import { isSameInstant, timestamp, timestampAfter } from '#src/base/time/clock.ts';
import type { NotebookFilters } from '#src/contract/wire/lists.ts';
import type { NotebookFields, NotebookSummary, NotebookVersion } from '#src/contract/wire/notebook.ts';
import { checkCursor, idBounds, type PageRequest, pageOf } from '#storage/lists/listing.ts';
import { type JsonPage, slicedJsonPage } from '#storage/lists/sliced-listing.ts';
import { RecordCache } from '#storage/record-cache.ts';
import { workspaceExists } from '#storage/records/identity.ts';
import {
  type NotebookRecord,
  notebookRecords,
  notebookSummaries,
  notebookVersionContents,
  notebookVersions,
} from '#storage/records/notebooks.ts';
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
import {
  beginsVersion,
  type ChangeOrigin,
  differs,
  type EncodedVersion,
  earlierVersions,
  encodeVersion,
  putVersion,
} from './notebook-versions.ts';
import { titleFilter } from './title-filter.ts';

/** The filters of a list of notebooks. An absent member does not filter. */
export type NotebookQuery = PageRequest & NotebookFilters;

/** Throws `session_open` while a session is open on the notebook, whether it is in memory or not. */
export type RefuseWhileOpen = (workspaceId: WorkspaceId, notebookId: string) => void;

/** Returns whether all texts of code parse. Returns a promise only if the answer is not known yet. */
export type AllParse = (codes: readonly string[], workspaceId: WorkspaceId) => boolean | Promise<boolean>;

export interface ServedNotebook {
  readonly json: Uint8Array;
  readonly updatedAt: string;
}

/** A notebook that is to be changed. */
interface StoredNotebook extends ServedNotebook {
  readonly versionSince: number;
}

/** A changed notebook, and the version that its change ends. */
interface EncodedChange {
  readonly notebook: EncodedNotebook;
  readonly version: EncodedVersion | undefined;
}

/** The author of a change of a notebook, and the state that the caller expects. */
export interface NotebookChangeOptions extends ChangeOrigin {
  /** The `updatedAt` of the caller's last read. */
  readonly expectedUpdatedAt: string;
  readonly checkState?: StateCheck<string> | undefined;
}

/** A live session's change of its document. */
export interface LiveChange {
  /** The earlier state, which is the saved state. */
  readonly before: NotebookDocument;
  /** When the version of the earlier state began; undefined when the session has not saved it, and the record has to be asked. */
  readonly versionSince: number | undefined;
  readonly after: NotebookDocument;
  /** The author; undefined when not known. */
  readonly by: string | undefined;
}

/** The document of a live session as it was saved, and when its version began, in milliseconds since 1970. */
export interface SavedChange {
  readonly document: NotebookDocument;
  readonly versionSince: number;
}

/** A change of parts of a notebook whose code has been checked. */
interface RequestedChange {
  readonly fields: NotebookFields;
  /** Whether every cell parses. */
  readonly valid: boolean;
  readonly origin: ChangeOrigin;
  readonly expectedUpdatedAt: string;
  readonly checkState: StateCheck<string>;
}

/**
 * The most large notebooks that are changed at once. During the change, a notebook is in memory several times, however small the
 * request is.
 */
const LARGE_CHANGES = { width: 4, widthOfKey: 2, queueOfKey: 64 };
/** The most versions that are restored at once. Each whole version is in memory while its code is checked. */
const RESTORATIONS = { width: 4, widthOfKey: 1, queueOfKey: 8 };

export class SavedNotebooks {
  readonly #store: Store;
  readonly #refuseWhileOpen: RefuseWhileOpen;
  readonly #allParse: AllParse;
  readonly #new = new NewNotebooks();
  readonly #largeChanges = new FairSemaphore(LARGE_CHANGES);
  readonly #restorations = new FairSemaphore(RESTORATIONS);
  /** Large notebooks that are about to be read. */
  readonly #prepared = new Map<string, NotebookDocument>();

  constructor(store: Store, refuseWhileOpen: RefuseWhileOpen, allParse: AllParse) {
    this.#store = store;
    this.#refuseWhileOpen = refuseWhileOpen;
    this.#allParse = allParse;
  }

  /**
   * Creates a notebook in the name of a user. `also` writes into the same commit, and `accepts` chooses among new ids. Throws
   * `duplicate_cell`, and `not_found` when the workspace has been deleted in the meantime.
   */
  async create(
    workspaceId: WorkspaceId,
    fields: NotebookFields,
    createdBy?: string,
    also?: (tx: Transaction, notebookId: string) => void,
    accepts?: (id: string) => boolean,
  ): Promise<{ document: NotebookDocument; json: Uint8Array }> {
    const valid = await this.#parses(workspaceId, fields);
    const make = () => newDocument(fields, valid, createdBy, accepts);
    const { document, json } = await this.#new.create(workspaceId, isSmall(fields), make, (encoded) => {
      if (!workspaceExists(this.#store, workspaceId)) throw notFound();
      this.#store.write((tx) => {
        putNotebook(tx, workspaceId, encoded);
        also?.(tx, encoded.document.id);
      });
    });
    return { document, json };
  }

  /** Returns whether the notebook exists. A deleted workspace has no notebooks, even if their records are still stored. */
  exists(workspaceId: WorkspaceId, notebookId: string): boolean {
    return (
      this.#store.has(notebookSummaries, workspaceId, notebookId) && workspaceExists(this.#store, workspaceId)
    );
  }

  /** Returns the notebook in the form that the API returns, and the time of its last change. Throws `not_found`. */
  served(workspaceId: WorkspaceId, notebookId: string): ServedNotebook {
    const record = this.#store.get(notebookRecords, workspaceId, notebookId);
    if (record === undefined) throw notFound();
    return { json: record.document, updatedAt: record.updatedAt };
  }

  /**
   * Returns a function that reads a notebook and returns the result of `show`. The function throws `not_found`. Results for small
   * notebooks are kept until the notebook changes, so a result must depend only on its notebook.
   */
  createReader<V extends object>(
    show: (notebook: ServedNotebook, notebookId: string) => V,
  ): (workspaceId: WorkspaceId, notebookId: string) => V {
    const shown = new RecordCache<NotebookRecord, V>(notebookRecords, ({ document: json, updatedAt }, id) =>
      show({ json, updatedAt }, id),
    );
    return (workspaceId, notebookId) => {
      const found = this.#store.compute(shown, workspaceId, notebookId);
      if (found === undefined) throw notFound();
      return found;
    };
  }

  #stored(workspaceId: WorkspaceId, notebookId: string): StoredNotebook {
    const record = this.#store.get(notebookRecords, workspaceId, notebookId);
    if (record === undefined) throw notFound();
    const { document: json, updatedAt, versionSince } = record;
    return { json, updatedAt, versionSince };
  }

  json(workspaceId: WorkspaceId, notebookId: string): Uint8Array {
    return this.served(workspaceId, notebookId).json;
  }

  read(workspaceId: WorkspaceId, notebookId: string): NotebookDocument {
    const document = this.find(workspaceId, notebookId);
    if (document === undefined) throw notFound();
    return document;
  }

  /**
   * Parses a large notebook in slices for `read`, for which the result is kept for a second after the promise has resolved.
   * Returns undefined when there is nothing to wait for.
   */
  prepare(workspaceId: WorkspaceId, notebookId: string): Promise<void> | undefined {
    const record = this.#store.get(notebookRecords, workspaceId, notebookId);
    if (record === undefined || record.document.byteLength <= MAX_SIZE_AT_ONCE) return undefined;
    return inSlices(decodePrepared(record.document), workspaceId).then((document) => {
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
    return inSlices(decodePrepared(this.json(workspaceId, notebookId)), workspaceId);
  }

  /** Returns a notebook; undefined when it was deleted. */
  find(workspaceId: WorkspaceId, notebookId: string): NotebookDocument | undefined {
    const prepared = this.#prepared.get(placeOf(workspaceId, notebookId));
    if (prepared !== undefined && prepared.updatedAt === this.#updatedAt(workspaceId, notebookId))
      return prepared;
    const record = this.#store.get(notebookRecords, workspaceId, notebookId);
    return record && atOnce(decodeNotebook(record.document));
  }

  /** Resolves with a page of summaries in the order in which the notebooks were created. Rejects with `invalid_cursor`. */
  async list(workspaceId: WorkspaceId, query: NotebookQuery, urlOf: NotebookUrl): Promise<JsonPage> {
    checkCursor(query.after, (text) => isIdOf('notebook', text));
    const bounds = idBounds('notebook', query);
    const isWanted = titleFilter(query.title);
    const hasPair = metadataFilter(query.metadata);
    return slicedJsonPage(this.#store, {
      page: query,
      workspaceId,
      entriesAfter: (after) =>
        this.#store.list(notebookSummaries, workspaceId, [], pageOf({ ...query, after }, bounds)),
      itemOf: ({ title, metadata, summary }, id) =>
        isWanted(title) && hasPair(metadata) ? withUrl(summary, urlOf(id)) : undefined,
    });
  }

  /** Returns the title of a notebook; null when the notebook has no title or is deleted. */
  title(workspaceId: WorkspaceId, notebookId: string): string | null {
    return this.#store.get(notebookSummaries, workspaceId, notebookId)?.title ?? null;
  }

  /**
   * Replaces the given parts, if the notebook is unchanged since the caller's read and no session is open on it. An open session
   * owns the document. The earlier state becomes a version, as `notebook-versions.ts` says.
   */
  async patch(
    workspaceId: WorkspaceId,
    notebookId: string,
    fields: NotebookFields,
    { expectedUpdatedAt, checkState = () => {}, ...origin }: NotebookChangeOptions,
  ): Promise<ServedNotebook> {
    const valid = await this.#parses(workspaceId, fields);
    const change = { fields, valid, origin, expectedUpdatedAt, checkState };
    return (
      this.#changeAtOnce(workspaceId, notebookId, change) ??
      this.#largeChanges.pass(workspaceId, () => this.#changeInSlices(workspaceId, notebookId, change))
    );
  }

  /** Changes a small notebook. Returns undefined for a large notebook, of which nothing is kept in memory. */
  #changeAtOnce(
    workspaceId: WorkspaceId,
    notebookId: string,
    change: RequestedChange,
  ): ServedNotebook | undefined {
    const before = this.#stored(workspaceId, notebookId);
    this.#requireChangeable(workspaceId, notebookId, before.updatedAt, change);
    if (!isSmall(change.fields) || before.json.byteLength > MAX_SIZE_AT_ONCE) return undefined;
    const changedNow = atOnce(changed(before, change));
    return this.#store.write((tx) => putChange(tx, workspaceId, changedNow));
  }

  async #changeInSlices(
    workspaceId: WorkspaceId,
    notebookId: string,
    change: RequestedChange,
  ): Promise<ServedNotebook> {
    const before = this.#stored(workspaceId, notebookId);
    this.#requireChangeable(workspaceId, notebookId, before.updatedAt, change);
    const encoded = await inSlices(changed(before, change), workspaceId);
    return this.#store.write((tx) => {
      const updatedAt = this.#updatedAt(workspaceId, notebookId);
      if (updatedAt === undefined) throw notFound();
      this.#requireChangeable(workspaceId, notebookId, updatedAt, change);
      if (updatedAt !== before.updatedAt) throw staleUpdate(updatedAt);
      return putChange(tx, workspaceId, encoded);
    });
  }

  #requireChangeable(
    workspaceId: WorkspaceId,
    notebookId: string,
    updatedAt: string,
    { expectedUpdatedAt, checkState }: RequestedChange,
  ): void {
    if (!workspaceExists(this.#store, workspaceId)) throw notFound();
    this.#refuseWhileOpen(workspaceId, notebookId);
    checkState(updatedAt);
    if (!isSameInstant(updatedAt, expectedUpdatedAt)) throw staleUpdate(updatedAt);
  }

  /** Returns the present version of a notebook and then the earlier versions, newest first. Throws `not_found`. */
  versions(workspaceId: WorkspaceId, notebookId: string): NotebookVersion[] {
    const record = this.#store.get(notebookSummaries, workspaceId, notebookId);
    if (record === undefined) throw notFound();
    const { title, cellCount, updatedBy, updatedAt } = JSON.parse(
      Buffer.from(record.summary).toString('utf8'),
    ) as NotebookSummary;
    const people = updatedBy === undefined ? {} : { updatedBy };
    const present = { updatedAt, ...people, title, cellCount, isCurrent: true };
    return [present, ...earlierVersions(this.#store, workspaceId, notebookId)];
  }

  /** Returns the JSON of a version, the present one included. Throws `not_found`. */
  version(workspaceId: WorkspaceId, notebookId: string, updatedAt: string): Uint8Array {
    const present = this.served(workspaceId, notebookId);
    if (present.updatedAt === updatedAt) return present.json;
    const earlier = this.#store.get(notebookVersionContents, workspaceId, notebookId, updatedAt);
    if (earlier === undefined) throw notFound();
    return earlier;
  }

  /** Gives a notebook the content of an earlier version. Rejects with `not_found`, and as `patch` does. */
  async restore(
    workspaceId: WorkspaceId,
    notebookId: string,
    version: string,
    change: NotebookChangeOptions,
  ): Promise<ServedNotebook> {
    return this.#restorations.pass(workspaceId, async () => {
      const content = this.version(workspaceId, notebookId, version);
      const { serialization, datasourceSlugs, variables, metadata } = await inSlices(
        decodeNotebook(content),
        workspaceId,
      );
      const fields = { serialization, datasourceSlugs, variables, metadata: metadata ?? {} };
      return this.patch(workspaceId, notebookId, fields, { ...change, isReplacement: true });
    });
  }

  /**
   * Saves the document of a live session. The earlier state becomes a version, as
   * `notebook-versions.ts` says.
   */
  save(workspaceId: WorkspaceId, { before, versionSince: since, after, by }: LiveChange): SavedChange {
    const { id } = after;
    return this.#store.write((tx) => {
      const stored =
        since === undefined
          ? this.#timesOf(workspaceId, id)
          : { updatedAt: before.updatedAt, versionSince: since };
      const saved = authored(after, by, timestampAfter(stored?.updatedAt));
      const nowMs = Date.parse(saved.updatedAt);
      const begins =
        stored !== undefined &&
        beginsVersion({ document: before, versionSince: stored.versionSince }, { by }, nowMs);
      if (begins) {
        const json = this.json(workspaceId, id);
        putVersion(tx, workspaceId, id, atOnce(encodeVersion(before, json, saved.updatedAt)));
      }
      const versionSince = begins ? nowMs : (stored?.versionSince ?? nowMs);
      putNotebook(tx, workspaceId, atOnce(encodeNotebook(saved, versionSince)));
      return { document: saved, versionSince };
    });
  }

  /** Throws `not_found`, `session_open`, or the error of `checkState`, when the notebook may not be deleted. */
  checkDeletion(workspaceId: WorkspaceId, notebookId: string, checkState: StateCheck<string>): void {
    const updatedAt = this.#updatedAt(workspaceId, notebookId);
    if (updatedAt === undefined) throw notFound();
    this.#refuseWhileOpen(workspaceId, notebookId);
    checkState(updatedAt);
  }

  /**
   * Returns the time of the notebook's last change, from the small part of its record; undefined when the notebook is deleted.
   */
  #updatedAt(workspaceId: WorkspaceId, notebookId: string): string | undefined {
    return this.#timesOf(workspaceId, notebookId)?.updatedAt;
  }

  #timesOf(
    workspaceId: WorkspaceId,
    notebookId: string,
  ): Pick<StoredNotebook, 'updatedAt' | 'versionSince'> | undefined {
    const record = this.#store.get(notebookSummaries, workspaceId, notebookId);
    if (record === undefined) return undefined;
    const { updatedAt } = JSON.parse(Buffer.from(record.summary).toString('utf8')) as { updatedAt: string };
    return { updatedAt, versionSince: record.versionSince };
  }

  /** Removes the notebook itself, so that it can no longer be found. */
  erase(tx: Transaction, workspaceId: WorkspaceId, notebookId: string): void {
    tx.remove(notebookRecords, workspaceId, notebookId);
    tx.remove(notebookSummaries, workspaceId, notebookId);
    tx.remove(notebookVersions, workspaceId, notebookId);
  }

  #parses(workspaceId: WorkspaceId, { serialization }: NotebookFields): boolean | Promise<boolean> {
    const codes = (serialization?.cells ?? []).map((cell) => cell.code);
    return this.#allParse(codes, workspaceId);
  }
}

/** How long a parsed notebook is kept: long enough for a decision that waits for its turn among several workers. */
const PREPARED_MS = 1000;

function isSmall(fields: NotebookFields): boolean {
  return isShortJson(fields, MAX_SIZE_AT_ONCE);
}

function staleUpdate(updatedAt: string): AppError {
  const detail = `The notebook was last updated at ${updatedAt}. Reload it first.`;
  return new AppError('stale_update', detail, { members: { updatedAt } });
}

/** Returns a notebook with a new id, which `accepts` allows if it is given. */
function newDocument(
  fields: NotebookFields,
  valid: boolean,
  createdBy: string | undefined,
  accepts?: (id: string) => boolean,
): NotebookDocument {
  let id = newId<NotebookId>('notebook');
  while (accepts?.(id) === false) id = newId<NotebookId>('notebook');
  const now = timestamp(timeOfId(id)); // the time of the id, so that the orders by id and by time are the same
  return {
    id,
    ...(createdBy === undefined ? {} : { createdBy }),
    createdAt: now,
    ...(createdBy === undefined ? {} : { updatedBy: createdBy }),
    updatedAt: now,
    serialization: withTitle(normalizeSerialization(fields.serialization ?? {}, valid), fields.title),
    datasourceSlugs: fields.datasourceSlugs ?? [],
    variables: fields.variables ?? {},
    ...shownMetadata(fields.metadata),
  };
}

/**
 * Returns the notebook with the author of its last change. If the author is unknown, the member is left out.
 */
function authored(
  { updatedBy: _, ...document }: NotebookDocument,
  by: string | undefined,
  updatedAt: string,
): NotebookDocument {
  return { ...document, ...(by === undefined ? {} : { updatedBy: by }), updatedAt };
}

/** Stores a changed notebook, and the version that its change ends. */
function putChange(
  tx: Transaction,
  workspaceId: WorkspaceId,
  { notebook, version }: EncodedChange,
): ServedNotebook {
  if (version !== undefined) putVersion(tx, workspaceId, notebook.document.id, version);
  putNotebook(tx, workspaceId, notebook);
  return { json: notebook.json, updatedAt: notebook.document.updatedAt };
}

/** Returns the notebook with the given parts replaced, and the version that ends with the change. */
function* changed(
  before: StoredNotebook,
  { fields, valid, origin }: Pick<RequestedChange, 'fields' | 'valid' | 'origin'>,
): Generator<undefined, EncodedChange> {
  const current = yield* decodeNotebook(before.json);
  const { serialization, datasourceSlugs, variables, title } = fields;
  const { metadata, ...others } = current;
  const updatedAt = timestampAfter(before.updatedAt);
  const document: NotebookDocument = {
    ...others,
    updatedAt,
    serialization: withTitle(
      serialization === undefined ? current.serialization : normalizeSerialization(serialization, valid),
      title,
    ),
    datasourceSlugs: datasourceSlugs ?? current.datasourceSlugs,
    variables: variables ?? current.variables,
    ...shownMetadata(fields.metadata ?? metadata),
  };
  const nowMs = Date.parse(updatedAt);
  const replaced = { document: current, versionSince: before.versionSince };
  const isOther = beginsVersion(replaced, origin, nowMs) && differs(current, document);
  const version = isOther ? yield* encodeVersion(current, before.json, updatedAt) : undefined;
  const versionSince = isOther ? nowMs : before.versionSince;
  // If the content is equal, the author stays, so that the state does not become a part of the next author's version.
  const author = isOther ? origin.by : current.updatedBy;
  return { notebook: yield* encodeNotebook(authored(document, author, updatedAt), versionSince), version };
}

function placeOf(workspaceId: WorkspaceId, notebookId: string): string {
  return `${workspaceId}/${notebookId}`;
}
