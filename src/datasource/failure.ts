/**
 * The reason of a failed connection or query: one category, with one fixed sentence. No part of a
 * driver's error is kept, not even as `cause`, because drivers put hosts, users and whole requests
 * into their errors.
 */
export const DATASOURCE_FAILURES = {
  name_not_found: 'The host name was not found.',
  refused: 'The server refused the connection.',
  unreachable: 'The server could not be reached.',
  not_allowed: 'This server is not allowed to connect to this address.',
  tls: 'A secure connection could not be made: no TLS, or a certificate that cannot be trusted.',
  authentication: 'The database did not accept the credentials.',
  database_missing: 'The database, catalog or schema does not exist, or the account may not use it.',
  timeout: 'The database did not answer in time.',
  too_much: 'The database sent more data than was asked for.',
  row_too_large:
    'A row of the result is larger than 16 MiB. Select fewer columns, or parts of long values, for example with substring().',
  file_missing: 'There is no such file or folder in the workspace.',
  file_unusable: 'The file cannot be opened as this kind of database.',
  file_locked: 'The file is in use by another program.',
  driver_missing: 'The driver for this kind of database is not installed on the server.',
  busy: 'All connections of this datasource are in use. Read each result to its end, or close its cursor, then try again.',
  query: 'The database did not accept the query.',
  cancelled: 'The query was cancelled.',
  failed: 'The connection did not work.',
} as const;

/** The kinds of failure that users and logs see. */
export type FailureCategory = keyof typeof DATASOURCE_FAILURES;

/**
 * A connection or a query that failed. Its texts may be shown to users, because they contain no
 * secrets.
 */
export class DatasourceFailure extends Error {
  readonly category: FailureCategory;
  /** The database's message about the statement, for its author. The connection's secrets are removed from it. */
  readonly detail: string | undefined;
  constructor(category: FailureCategory, message: string = DATASOURCE_FAILURES[category], detail?: string) {
    super(message);
    this.name = 'DatasourceFailure';
    this.category = category;
    this.detail = detail;
  }
}

const BY_CODE: Readonly<Record<string, FailureCategory>> = {
  ENOTFOUND: 'name_not_found',
  EAI_AGAIN: 'name_not_found',
  EAI_NODATA: 'name_not_found',
  EAI_NONAME: 'name_not_found',
  ECONNREFUSED: 'refused',
  ECONNRESET: 'unreachable',
  EHOSTDOWN: 'unreachable',
  EHOSTUNREACH: 'unreachable',
  ENETDOWN: 'unreachable',
  ENETUNREACH: 'unreachable',
  EADDRNOTAVAIL: 'unreachable',
  EINVAL: 'unreachable',
  EPIPE: 'unreachable',
  ETIMEDOUT: 'timeout',
  ABORT_ERR: 'timeout',
  EPROTO: 'tls',
  SELF_SIGNED_CERT_IN_CHAIN: 'tls',
  DEPTH_ZERO_SELF_SIGNED_CERT: 'tls',
  CERT_HAS_EXPIRED: 'tls',
  CERT_NOT_YET_VALID: 'tls',
  CERT_REVOKED: 'tls',
  CERT_UNTRUSTED: 'tls',
  HOSTNAME_MISMATCH: 'tls',
};

/** Returns the category of an error of a socket or of TLS; `undefined` for any other error. */
export function categoryOfSocketError(error: unknown): FailureCategory | undefined {
  if (error instanceof AggregateError) {
    const categories = error.errors.map(categoryOfSocketError);
    return categories.includes('refused') ? 'refused' : categories.find((one) => one !== undefined);
  }
  const code = codeOf(error);
  if (code === undefined)
    return error instanceof Error && error.name === 'TimeoutError' ? 'timeout' : undefined;
  if (/^(ERR_TLS_|ERR_SSL_|UNABLE_TO_)/.test(code)) return 'tls';
  return BY_CODE[code];
}

/** Returns the `code` that Node.js and most drivers set on their errors; undefined when there is none. */
export function codeOf(error: unknown): string | undefined {
  return error instanceof Error && 'code' in error && typeof error.code === 'string' ? error.code : undefined;
}
