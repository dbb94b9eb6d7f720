import { defineRecord } from './codec.ts';

/** What may be known of a datasource. Key: workspace id, slug. */
export interface DatasourceRecord {
  readonly id: string;
  readonly slug: string;
  readonly kind: string;
  readonly name: string | null;
  readonly revision: number;
  readonly embedded: boolean;
  readonly createdBy: string;
  readonly createdAt: string;
  readonly updatedAt: string;
}
export const datasourceRecords = defineRecord<DatasourceRecord>('datasource', 1);

/**
 * One complete connection, sealed: `box` by a data key of its own, that data key (`keyBox`) by a key of the keyring.
 * Key: workspace id, slug, revision.
 */
export interface SealedConnection {
  readonly keyId: string;
  readonly keyNonce: Uint8Array;
  readonly keyBox: Uint8Array;
  readonly nonce: Uint8Array;
  readonly box: Uint8Array;
}
export const sealedConnections = defineRecord<SealedConnection>('sealed-connection', 1);

/** Which key sealed what. Key: SYSTEM, key id, workspace id, slug, revision. */
export const sealedBy = defineRecord<null>('sealed-by', 1);

/** Something sealed with a key of the keyring, to tell whether a keyring is the right one. Key: SYSTEM, key id. */
export interface KeyCheck {
  readonly nonce: Uint8Array;
  readonly box: Uint8Array;
}
export const keyChecks = defineRecord<KeyCheck>('key-check', 1);

/** Who else may read a datasource. Key: workspace id, slug, subject (`user:<id>` or `role:<role>`). */
export interface DatasourceGrant {
  readonly grantedBy: string;
  readonly createdAt: string;
}
export const datasourceGrants = defineRecord<DatasourceGrant>('datasource-grant', 1);
