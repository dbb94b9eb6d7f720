/**
 * Datasources: what is known of them, and their sealed connections. A change reads the revision first and compares it
 * again when it commits, so nothing is lost to a change in between. Credentials go in and never come out.
 */
import { timestamp } from '#src/core/clock.ts';
import { AppError, notFound } from '#src/core/errors.ts';
import { newId, type WorkspaceId } from '#src/core/ids.ts';
import type { Principal } from '#src/core/principal.ts';
import { type DatasourceRecord, datasourceGrants, datasourceRecords } from '#storage/datasources.ts';
import { invalidCursor, type Listing, listingOf, type PageRequest } from '#storage/listing.ts';
import type { Entry, Store, Transaction } from '#storage/store.ts';
import { mayRead } from './access.ts';
import { type Actor, noteAudit } from './audit.ts';
import type { Connection } from './connectors/connection-schema.ts';
import type { Keyring } from './keys/keyring.ts';
import { putSealed, readSealed, removeSealed } from './keys/sealed-connections.ts';
import type { ProbeResult } from './probe.ts';

/** What is known of connections: their schema, whether one is complete, whether it works. */
export interface Connections {
  /** Throws `invalid_request` that says where, with paths below `/connection`. */
  parse(value: unknown): Connection;
  isEmbedded(kind: string): boolean;
  probe(workspaceId: WorkspaceId, connection: Connection): Promise<ProbeResult>;
}

export interface DatasourceMetadata {
  readonly id: string;
  readonly slug: string;
  readonly kind: string;
  readonly name: string | null;
  readonly revision: number;
  readonly configured: boolean;
  readonly embedded: boolean;
}

export interface NewDatasource {
  readonly slug: string;
  readonly name?: string | null;
  readonly connection: unknown;
  readonly testConnection?: boolean;
}

export type Replacement = Omit<NewDatasource, 'slug'>;

/** Saved, or not saved because the connection test failed. */
export type Saved =
  | { readonly saved: true; readonly metadata: DatasourceMetadata }
  | { readonly saved: false; readonly probe: ProbeResult };

export interface DatasourcesOptions {
  readonly store: Store;
  readonly keyring: () => Keyring;
  readonly connections: Connections;
  /** Told when connections of a datasource are void: pools of them are to be closed. */
  readonly onGone: (workspaceId: WorkspaceId, slug: string) => void;
}

export class Datasources {
  readonly #options: DatasourcesOptions;

  constructor(options: DatasourcesOptions) {
    this.#options = options;
  }

  /** Those the caller may read, by slug. */
  list(principal: Principal, { after, limit }: PageRequest): Listing<DatasourceMetadata> {
    const { store } = this.#options;
    const { workspaceId } = principal;
    if (after !== undefined && store.get(datasourceRecords, workspaceId, after) === undefined)
      throw invalidCursor();
    return listingOf(this.#allReadable(principal, after), limit, metadataOf);
  }

  *#allReadable(principal: Principal, after: string | undefined): Generator<Entry<DatasourceRecord>> {
    const { store } = this.#options;
    const page = { after, limit: Number.POSITIVE_INFINITY };
    for (const entry of store.list(datasourceRecords, principal.workspaceId, [], page)) {
      if (mayRead(store, principal, entry.value)) yield entry;
    }
  }

  /** Throws `not_found` when there is none, or none that the caller may know of. */
  get(principal: Principal, slug: string): DatasourceMetadata {
    return metadataOf(this.readable(principal, slug));
  }

  /** Throws `already_exists` and `invalid_request`. */
  async create(
    actor: Actor,
    { slug, name = null, connection, testConnection }: NewDatasource,
  ): Promise<Saved> {
    const { store, connections } = this.#options;
    const { workspaceId, userId } = actor.principal;
    const parsed = connections.parse(connection);
    this.#refuseExisting(store, workspaceId, slug);
    const failed = await this.#test(actor, 'datasource.create', slug, parsed, testConnection);
    if (failed !== undefined) return { saved: false, probe: failed };
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
      this.#refuseExisting(tx, workspaceId, slug);
      this.#put(tx, workspaceId, record, parsed);
      noteAudit(tx, actor, { action: 'datasource.create', target: slug, outcome: 'done' });
    });
    return { saved: true, metadata: metadataOf(record) };
  }

  /** Throws `not_found`, `invalid_request` and `datasource_changed`. */
  async replace(
    actor: Actor,
    slug: string,
    { name, connection, testConnection }: Replacement,
  ): Promise<Saved> {
    const { store, connections, onGone } = this.#options;
    const { principal } = actor;
    const before = this.readable(principal, slug);
    const parsed = connections.parse(connection);
    const failed = await this.#test(actor, 'datasource.replace', slug, parsed, testConnection);
    if (failed !== undefined) return { saved: false, probe: failed };
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
      noteAudit(tx, actor, { action: 'datasource.replace', target: slug, outcome: 'done' });
    });
    onGone(principal.workspaceId, slug);
    return { saved: true, metadata: metadataOf(after) };
  }

  /** Removes the sealed connection and the grants; files and everything else stay. Throws `not_found`. */
  delete(actor: Actor, slug: string): void {
    const { store, onGone } = this.#options;
    const { principal } = actor;
    const { workspaceId } = principal;
    const { revision } = this.readable(principal, slug);
    const grants = [
      ...store.list(datasourceGrants, workspaceId, [slug], { limit: Number.POSITIVE_INFINITY }),
    ];
    store.write((tx) => {
      tx.remove(datasourceRecords, workspaceId, slug);
      removeSealed(tx, { workspaceId, slug, revision });
      for (const { id } of grants) tx.remove(datasourceGrants, workspaceId, slug, id);
      noteAudit(tx, actor, { action: 'datasource.delete', target: slug, outcome: 'done' });
    });
    onGone(workspaceId, slug);
  }

  /** Tests the saved connection. Throws `not_found`, and `datasource_changed` when it changed meanwhile. */
  async test(actor: Actor, slug: string): Promise<ProbeResult> {
    const { store, connections } = this.#options;
    const { principal } = actor;
    const before = this.readable(principal, slug);
    const probe = await connections.probe(principal.workspaceId, this.open(principal.workspaceId, before));
    store.write((tx) => {
      refuseChanged(tx, principal.workspaceId, before);
      const outcome = probe.ok ? 'done' : 'failed';
      noteAudit(tx, actor, { action: 'datasource.test', target: slug, outcome });
    });
    return probe;
  }

  /** Tests a connection that is not saved. Throws `invalid_request`. */
  async testUnsaved(actor: Actor, connection: unknown): Promise<ProbeResult> {
    const { store, connections } = this.#options;
    const parsed = connections.parse(connection);
    const probe = await connections.probe(actor.principal.workspaceId, parsed);
    store.write((tx) => {
      const outcome = probe.ok ? 'done' : 'failed';
      noteAudit(tx, actor, { action: 'datasource.test-unsaved', target: parsed.kind, outcome });
    });
    return probe;
  }

  /** The connection itself, for a probe or a query; never for an answer. */
  open(workspaceId: WorkspaceId, { slug, revision }: DatasourceRecord): Connection {
    const { store, keyring } = this.#options;
    return readSealed(store, keyring(), { workspaceId, slug, revision });
  }

  /** The record, when the caller may read it. Throws `not_found`. */
  readable(principal: Principal, slug: string): DatasourceRecord {
    const { store } = this.#options;
    const record = store.get(datasourceRecords, principal.workspaceId, slug);
    if (record === undefined || !mayRead(store, principal, record)) throw notFound();
    return record;
  }

  #put(tx: Transaction, workspaceId: WorkspaceId, record: DatasourceRecord, connection: Connection): void {
    const { slug, revision } = record;
    tx.put(datasourceRecords, record, workspaceId, slug);
    putSealed(tx, this.#options.keyring(), { workspaceId, slug, revision }, connection);
  }

  /** The failed test, if one was asked for and failed: nothing is saved then but the note that it was tried. */
  async #test(
    actor: Actor,
    action: string,
    slug: string,
    connection: Connection,
    wanted: boolean | undefined,
  ): Promise<ProbeResult | undefined> {
    if (wanted !== true) return undefined;
    const { store, connections } = this.#options;
    const probe = await connections.probe(actor.principal.workspaceId, connection);
    if (probe.ok) return undefined;
    store.write((tx) => noteAudit(tx, actor, { action, target: slug, outcome: 'failed' }));
    return probe;
  }

  #refuseExisting(reader: Pick<Store, 'get'>, workspaceId: WorkspaceId, slug: string): void {
    if (reader.get(datasourceRecords, workspaceId, slug) === undefined) return;
    throw new AppError('already_exists', `There is a datasource ${slug} already.`);
  }
}

function refuseChanged(tx: Transaction, workspaceId: WorkspaceId, before: DatasourceRecord): void {
  const now = tx.get(datasourceRecords, workspaceId, before.slug);
  if (now?.id === before.id && now.revision === before.revision) return;
  throw new AppError(
    'datasource_changed',
    `The datasource ${before.slug} changed meanwhile. Read it again first.`,
  );
}

function metadataOf({ id, slug, kind, name, revision, embedded }: DatasourceRecord): DatasourceMetadata {
  return { id, slug, kind, name, revision, configured: true, embedded };
}
