/** Recognises errors of the MySQL protocol by their fields, so that the driver need not be loaded. */
import { codeOf, type FailureCategory } from '../../failure.ts';

const CATEGORIES: Readonly<Record<string, FailureCategory>> = {
  ER_ACCESS_DENIED_ERROR: 'authentication',
  ER_ACCESS_DENIED_NO_PASSWORD_ERROR: 'authentication',
  ER_ACCOUNT_HAS_BEEN_LOCKED: 'authentication',
  ER_HOST_NOT_PRIVILEGED: 'authentication',
  ER_MUST_CHANGE_PASSWORD_LOGIN: 'authentication',
  ER_NOT_SUPPORTED_AUTH_MODE: 'authentication',
  AUTH_SWITCH_PLUGIN_ERROR: 'authentication',
  ER_BAD_DB_ERROR: 'database_missing',
  ER_DBACCESS_DENIED_ERROR: 'database_missing',
  HANDSHAKE_NO_SSL_SUPPORT: 'tls',
  HANDSHAKE_SSL_ERROR: 'tls',
  ER_SECURE_TRANSPORT_REQUIRED: 'tls',
  ER_QUERY_INTERRUPTED: 'cancelled',
  PROTOCOL_CONNECTION_LOST: 'unreachable',
};

/** Returns the category of an error of the driver or the server. */
export function classifyMysql(error: unknown): FailureCategory | undefined {
  return CATEGORIES[codeOf(error) ?? ''];
}

/** Returns the server's message if the error is about a statement. */
export function explainMysql(error: unknown): string | undefined {
  return error instanceof Error && 'sqlMessage' in error && typeof error.sqlMessage === 'string'
    ? error.sqlMessage
    : undefined;
}

/** Returns whether the error says that the server has no TLS. */
export function mysqlLacksTls(error: unknown): boolean {
  return codeOf(error) === 'HANDSHAKE_NO_SSL_SUPPORT';
}
