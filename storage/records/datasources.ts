import type { Datasource } from '#src/contract/wire/datasource.ts';
import { defineMark, defineRecord } from '../codec.ts';

/** The metadata of a datasource: everything but its connection. Key: workspace id, slug. */
export type DatasourceRecord = Omit<Datasource, 'configured' | 'warnings'>;
export const datasourceRecords = defineRecord<DatasourceRecord>('datasource', 1);

/**
 * One complete connection, encrypted with a data key of its own (`box`). The data key is encrypted with a key of the
 * keyring (`keyBox`). A connection is written in the home of the workspace. Secrets of notebooks are stored as such
 * records, too, and are written in the home of the notebook. Key: workspace id, slug, revision.
 */
export interface SealedConnection {
  readonly keyId: string;
  readonly keyNonce: Uint8Array;
  readonly keyBox: Uint8Array;
  readonly nonce: Uint8Array;
  readonly box: Uint8Array;
}
export const sealedConnections = defineRecord<SealedConnection>('sealed-connection', 1);

/**
 * The connections that a key of the keyring encrypts. An entry is written together with its
 * connection. Key: SYSTEM, key id, workspace id, slug, revision.
 */
export const sealedBy = defineMark('sealed-by');

/** A known text encrypted with a key of the keyring, which shows whether a keyring is the right one. Key: SYSTEM, key id. */
export interface KeyCheck {
  readonly nonce: Uint8Array;
  readonly box: Uint8Array;
}
export const keyChecks = defineRecord<KeyCheck>('key-check', 1);

/** A subject with whom a datasource is shared. Key: workspace id, slug, subject (`user:<id>` or `role:<role>`). */
export interface DatasourceGrantRecord {
  readonly grantedBy: string;
  readonly createdAt: string;
}
export const datasourceGrants = defineRecord<DatasourceGrantRecord>('datasource-grant', 1);
