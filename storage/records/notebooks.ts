import { defineRecord } from '../codec.ts';

/** A saved notebook, stored in the form in which it is served. */
export interface NotebookRecord {
  readonly updatedAt: string;
  /**
   * When the present version began, in milliseconds since 1970: further changes of its author belong to it for a while.
   */
  readonly versionSince: number;
  /** JSON of the whole notebook. */
  readonly document: Uint8Array;
}

/**
 * The home of the workspace creates the record. From then on the home of the notebook writes it.
 * Key: workspace id, notebook id.
 */
export const notebookRecords = defineRecord<NotebookRecord>('notebook', 1);

/**
 * The part of a notebook that lists show. It is stored apart from the code, so that lists need not
 * read the code.
 */
export interface NotebookSummaryRecord {
  readonly title: string | null;
  /** The metadata, by which lists are filtered. Absent when there are none. */
  readonly metadata?: Readonly<Record<string, string>>;
  /** The same value as in the record of the notebook. */
  readonly versionSince: number;
  /** JSON of the notebook's entry in lists. */
  readonly summary: Uint8Array;
}

/** Key: workspace id, notebook id. Every notebook has one. */
export const notebookSummaries = defineRecord<NotebookSummaryRecord>('notebook-summary', 1);

/** An earlier version of a notebook, without its content. */
export interface NotebookVersionEntry {
  /**
   * The time of its last change, which identifies the version: no two versions of a notebook have
   * the same time.
   */
  readonly updatedAt: string;
  readonly updatedBy?: string;
  readonly title: string | null;
  readonly cellCount: number;
  /** The time of the change that replaced it, from which retention counts. */
  readonly replacedAt: string;
  /** The size of its content. */
  readonly bytes: number;
}

/** The earlier versions of a notebook, oldest first. Key: workspace id, notebook id. Absent while there are none. */
export const notebookVersions = defineRecord<readonly NotebookVersionEntry[]>('notebook-versions', 1);

/**
 * The JSON of a notebook at an earlier time. Key: workspace id, notebook id, its `updatedAt` at
 * that time.
 */
export const notebookVersionContents = defineRecord<Uint8Array>('notebook-version', 1);

/** The last output and console of one cell, so that a reopened notebook shows them. */
export interface CellOutputRecord {
  /** The output without its large parts, which are stored apart. */
  readonly output: unknown;
  readonly console: readonly unknown[];
  /** The code that produced it, or its hash when it is long. */
  readonly code: string;
  readonly held: readonly HeldPart[];
}

/** A large part of an output, which is a blob. */
export interface HeldPart {
  /** 0 means the output, and n the n-th entry of the console. */
  readonly entry: number;
  /** The MIME type of the part: of the entry, or of a member of the entry's bundle. */
  readonly type: string;
  readonly sha256: string;
  /** The text before the base64 bytes when the part is a data URL; null when the bytes are its text. */
  readonly urlStart: string | null;
  /** Whether the text is the JSON of the part. */
  readonly isJson: boolean;
}

/** Key: workspace id, notebook id, cell id. */
export const cellOutputRecords = defineRecord<CellOutputRecord>('cell-output', 1);

/**
 * The names of a notebook's secret variables, with the user and time of each; their values are sealed. Key: workspace
 * id, notebook id.
 */
export interface NotebookSecretsRecord {
  readonly byName: Readonly<Record<string, { readonly updatedBy: string; readonly updatedAt: string }>>;
}
export const notebookSecretRecords = defineRecord<NotebookSecretsRecord>('notebook-secrets', 1);

const SECRET_PREFIX = 'notebook-secret:';

/**
 * Returns the name under which the secret variable of a notebook is sealed. It never equals the
 * name of a datasource, because no slug has a colon.
 */
export function sealedSecretName(notebookId: string, name: string): string {
  return `${SECRET_PREFIX}${notebookId}:${name}`;
}

/** Returns the notebook whose secret variable is sealed under a name; undefined for secrets of the whole workspace. */
export function notebookOfSealed(name: string): string | undefined {
  return name.startsWith(SECRET_PREFIX) ? name.slice(SECRET_PREFIX.length).split(':', 1)[0] : undefined;
}
