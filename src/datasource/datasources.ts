/**
 * Datasources: their metadata and their sealed connections. A change remembers the revision that it began with and
 * compares it again when it commits, so no concurrent change is overwritten. Credentials never leave the server.
 */

import type { Principal } from '#src/base/caller/principal.ts';
import { AppError, notFound } from '#src/base/errors/errors.ts';
import type { StateCheck } from '#src/base/errors/refusals.ts';
import { isPlausibleId, newId, type UserId, type WorkspaceId } from '#src/base/ids.ts';
import { timestamp } from '#src/base/time/clock.ts';
import type {
  ConnectionTest,
  Datasource,
  DatasourceReplacement,
  DatasourceWarning,
  NewDatasource,
} from '#src/contract/wire/datasource.ts';
import type { AuditContext, AuditTrail } from '#src/people/audit/audit-trail.ts';
import { checkCursor, type PageRequest } from '#storage/lists/listing.ts';
import { type JsonPage, slicedJsonPage } from '#storage/lists/sliced-listing.ts';
import { type DatasourceRecord, datasourceGrants, datasourceRecords } from '#storage/records/datasources.ts';
import { memberRecords, workspaceExists } from '#storage/records/identity.ts';
import type { Store } from '#storage/store.ts';
import type { Transaction } from '#storage/transaction.ts';
import { mayRead } from './access.ts';
import type { ConnectionSettings } from './connectors/connection-schema.ts';
import type { KeyringSource } from './keys/keyring.ts';
import { putSealed, readSealed, removeSealed } from './keys/sealed-connections.ts';

/** The operations on connections that this module needs. */
export interface Connections {
  /** Returns the complete connection. Throws `invalid_request` with the mistakes, at paths below `/connection`. */
  parse(value: unknown): ConnectionSettings;
  /** Returns whether databases of this kind run inside the server, on files of the workspace. */
  isEmbedded(kind: string): boolean;
  /** Tests the connection. Resolves with a failed result, instead of rejecting, when the database does not answer. */
  probe(workspaceId: WorkspaceId, connection: ConnectionSettings): Promise<ConnectionTest>;
  /** Returns the warnings of a connection of this kind that was not tested. */
  untestedWarnings(kind: string): readonly DatasourceWarning[];
}

/** The outcome of a change: saved, or not saved because the connection test that was asked for failed. */
export type Saved =
  | { readonly saved: true; readonly metadata: Datasource }
  | { readonly saved: false; readonly probe: ConnectionTest };

/** The dependencies of `Datasources`. */
export interface DatasourcesOptions {
  readonly audit: AuditTrail;
  readonly store: Store;
  readonly keys: KeyringSource;
  readonly connections: Connections;
  /**
   * Called after a datasource was replaced or deleted, because its pooled connections and
   * descriptions are outdated.
   */
  readonly onGone: (workspaceId: WorkspaceId, slug: string) => void;
}

/** Creates, reads, changes, tests and deletes datasources for permitted callers. Owns their records. */
export class Datasources {
  readonly #options: DatasourcesOptions;

  constructor(options: DatasourcesOptions) {
    this.#options = options;
  }

  /** Resolves with the datasources that the caller may read, sorted by slug. Rejects with `invalid_cursor`. */
  async list(principal: Principal, page: Omit<PageRequest, 'order'>): Promise<JsonPage> {
    const { store } = this.#options;
    checkCursor(page.after, isPlausibleId);
    return slicedJsonPage(store, {
      page,
      workspaceId: principal.workspaceId,
      entriesAfter: (after) =>
        store.list(datasourceRecords, principal.workspaceId, [], { after, limit: Number.POSITIVE_INFINITY }),
      itemOf: (record) =>
        mayRead(store, principal, record) ? Buffer.from(JSON.stringify(metadataOf(record))) : undefined,
      maxPassed: Number.POSITIVE_INFINITY, // a list that comes whole
    });
  }

  /** Returns the metadata. Throws `not_found` when there is no such datasource or the caller may not read it. */
  get(principal: Principal, slug: string): Datasource {
    return metadataOf(this.readable(principal, slug));
  }

  /**
   * Saves a new datasource, or returns the failed connection test. Throws `already_exists` when the slug is taken,
   * `invalid_request` when the connection is incomplete, and `not_found` when the workspace has been deleted meanwhile.
   */
  async create(
    actor: AuditContext,
    { slug, name = null, connection, testConnection }: NewDatasource,
  ): Promise<Saved> {
    const { store, connections } = this.#options;
    const { workspaceId, userId } = actor.principal;
    const parsed = connections.parse(connection);
    this.#refuseExisting(store, workspaceId, slug);
    const probe = await this.#test(actor, 'datasource.create', slug, parsed, testConnection);
    if (probe?.ok === false) return { saved: false, probe };
    const now = timestamp();
    const record: DatasourceRecord = {
      id: newId('datasource'),
      slug,
      kind: parsed.kind,
      name,
      revision: 1,
      embedded: connections.isEmbedded(parsed.kind),
      createdBy: userId,
      createdAt: now,
      updatedAt: now,
    };
    store.write((tx) => {
      if (!workspaceExists(store, workspaceId)) throw notFound();
      this.#refuseExisting(tx, workspaceId, slug);
      this.#put(tx, workspaceId, record, parsed);
      this.#options.audit.note(actor, { action: 'datasource.create', target: slug, outcome: 'done' });
    });
    return { saved: true, metadata: this.#savedMetadata(record, probe) };
  }

  /**
   * Replaces connection and name, or returns the failed connection test. Throws `not_found`, `invalid_request`, and
   * `datasource_changed` when another request changed the datasource meanwhile.
   */
  async replace(
    actor: AuditContext,
    slug: string,
    { name, connection, testConnection }: DatasourceReplacement,
    checkState: StateCheck<Pick<DatasourceRecord, 'id' | 'revision'>> = () => {},
  ): Promise<Saved> {
    const { store, connections, onGone } = this.#options;
    const { principal } = actor;
    const before = this.readable(principal, slug);
    checkState(before);
    const parsed = connections.parse(connection);
    const probe = await this.#test(actor, 'datasource.replace', slug, parsed, testConnection);
    if (probe?.ok === false) return { saved: false, probe };
    const after: DatasourceRecord = {
      ...before,
      kind: parsed.kind,
      name: name === undefined ? before.name : name,
      revision: before.revision + 1,
      embedded: connections.isEmbedded(parsed.kind),
      updatedAt: timestamp(),
    };
    store.write((tx) => {
      refuseChanged(tx, principal.workspaceId, before);
      removeSealed(tx, { workspaceId: principal.workspaceId, slug, revision: before.revision });
      this.#put(tx, principal.workspaceId, after, parsed);
      this.#options.audit.note(actor, { action: 'datasource.replace', target: slug, outcome: 'done' });
    });
    onGone(principal.workspaceId, slug);
    return { saved: true, metadata: this.#savedMetadata(after, probe) };
  }

  /** Deletes a datasource with its sealed connection and its grants; files stay. Throws `not_found`. */
  delete(
    actor: AuditContext,
    slug: string,
    checkState: StateCheck<Pick<DatasourceRecord, 'id' | 'revision'>> = () => {},
  ): void {
    const { store, onGone } = this.#options;
    const { principal } = actor;
    const { workspaceId } = principal;
    const record = this.readable(principal, slug);
    checkState(record);
    const { revision } = record;
    // A remaining grant would apply to the next datasource with this slug.
    const grants = store.idsUnder(datasourceGrants, workspaceId, slug);
    store.write((tx) => {
      tx.remove(datasourceRecords, workspaceId, slug);
      removeSealed(tx, { workspaceId, slug, revision });
      for (const subject of grants) tx.remove(datasourceGrants, workspaceId, slug, subject);
      this.#options.audit.note(actor, { action: 'datasource.delete', target: slug, outcome: 'done' });
    });
    onGone(workspaceId, slug);
  }

  /** Tests the saved connection. Throws `not_found`, and `datasource_changed` when it changed during the test. */
  async test(actor: AuditContext, slug: string): Promise<ConnectionTest> {
    const { store, connections } = this.#options;
    const { principal } = actor;
    const before = this.readable(principal, slug);
    const probe = await connections.probe(principal.workspaceId, this.open(principal.workspaceId, before));
    store.write((tx) => {
      refuseChanged(tx, principal.workspaceId, before);
      const outcome = probe.ok ? 'done' : 'failed';
      this.#options.audit.note(actor, { action: 'datasource.test', target: slug, outcome });
    });
    return probe;
  }

  /** Tests a connection without saving it. Throws `invalid_request` when it is incomplete. */
  async testUnsaved(actor: AuditContext, connection: unknown): Promise<ConnectionTest> {
    const { connections } = this.#options;
    const parsed = connections.parse(connection);
    const probe = await connections.probe(actor.principal.workspaceId, parsed);
    const outcome = probe.ok ? 'done' : 'failed';
    this.#options.audit.note(actor, { action: 'datasource.test-unsaved', target: parsed.kind, outcome });
    return probe;
  }

  /** Returns the unsealed connection, for a probe or a query. It must never become part of a response or a log. */
  open(workspaceId: WorkspaceId, { slug, revision }: DatasourceRecord): ConnectionSettings {
    const { store, keys } = this.#options;
    return readSealed(store, keys, { workspaceId, slug, revision });
  }

  /** Returns the record. Throws `not_found` when there is none or the caller may not read it. */
  readable(principal: Principal, slug: string): DatasourceRecord {
    const { store } = this.#options;
    store.refreshShared(); // agents ask long after the prompt was sent
    const record = store.get(datasourceRecords, principal.workspaceId, slug);
    if (record === undefined || !mayRead(store, principal, record)) throw notFound();
    return record;
  }

  /**
   * Returns whether this datasource exists but the user may not read it, by their present role and
   * grants.
   */
  isKeptFrom(workspaceId: WorkspaceId, userId: string, slug: string): boolean {
    const { store } = this.#options;
    store.refreshShared();
    const member = store.get(memberRecords, workspaceId, userId);
    const record = store.get(datasourceRecords, workspaceId, slug);
    if (record === undefined) return false;
    if (member === undefined) return true;
    return !mayRead(store, { workspaceId, userId: userId as UserId, role: member.role }, record);
  }

  #put(
    tx: Transaction,
    workspaceId: WorkspaceId,
    record: DatasourceRecord,
    connection: ConnectionSettings,
  ): void {
    const { slug, revision } = record;
    tx.put(datasourceRecords, record, workspaceId, slug);
    putSealed(tx, this.#options.keys.ring, { workspaceId, slug, revision }, connection);
  }

  #savedMetadata(record: DatasourceRecord, probe: ConnectionTest | undefined): Datasource {
    const { connections } = this.#options;
    const warnings = probe === undefined ? connections.untestedWarnings(record.kind) : (probe.warnings ?? []);
    return { ...metadataOf(record), ...(warnings.length > 0 && { warnings }) };
  }

  /** Tests the connection if `wanted`, and returns the result. A test that failed goes to the audit log. */
  async #test(
    actor: AuditContext,
    action: string,
    slug: string,
    connection: ConnectionSettings,
    wanted: boolean | undefined,
  ): Promise<ConnectionTest | undefined> {
    if (wanted !== true) return undefined;
    const { connections } = this.#options;
    const probe = await connections.probe(actor.principal.workspaceId, connection);
    if (!probe.ok) this.#options.audit.note(actor, { action, target: slug, outcome: 'failed' });
    return probe;
  }

  #refuseExisting(reader: Pick<Store, 'get'>, workspaceId: WorkspaceId, slug: string): void {
    if (reader.get(datasourceRecords, workspaceId, slug) === undefined) return;
    throw new AppError('already_exists', `A datasource with the slug ${slug} already exists.`);
  }
}

function refuseChanged(tx: Transaction, workspaceId: WorkspaceId, before: DatasourceRecord): void {
  const now = tx.get(datasourceRecords, workspaceId, before.slug);
  if (now?.id === before.id && now.revision === before.revision) return;
  throw new AppError(
    'datasource_changed',
    `The datasource ${before.slug} was changed by another request. Read it again, then repeat your change.`,
  );
}

function metadataOf({
  id,
  slug,
  kind,
  name,
  revision,
  embedded,
  createdBy,
  createdAt,
  updatedAt,
}: DatasourceRecord): Datasource {
  return { id, slug, kind, name, revision, configured: true, embedded, createdBy, createdAt, updatedAt };
}
