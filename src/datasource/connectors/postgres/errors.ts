/** Recognises errors of the PostgreSQL protocol by their fields, so that the driver need not be loaded. */
import { codeOf, type FailureCategory } from '../../failure.ts';

const NO_TLS = 'The server does not support SSL connections';

/** Returns whether the error says that the server has no TLS. */
export function postgresLacksTls(error: unknown): boolean {
  return error instanceof Error && error.message === NO_TLS;
}

/** Returns the category of an error about the connection; `undefined` when it is about a statement. */
export function classifyPostgres(error: unknown): FailureCategory | undefined {
  if (!(error instanceof Error)) return undefined;
  if (isServerError(error)) {
    const code = codeOf(error) ?? '';
    if (code.startsWith('28')) return 'authentication';
    if (code === '3D000') return 'database_missing';
    if (code === '57014') return 'cancelled';
    return code.startsWith('08') ? 'unreachable' : undefined;
  }
  if (postgresLacksTls(error) || error.message.includes('SSL connection')) return 'tls';
  if (/^(SASL|No SASLprep)|channel binding/i.test(error.message)) return 'authentication';
  return error.message.startsWith('Connection terminated') ? 'unreachable' : undefined;
}

/** Returns the server's message and its hint. */
export function explainPostgres(error: unknown): string | undefined {
  if (!(error instanceof Error) || !isServerError(error)) return undefined;
  const hint = 'hint' in error && typeof error.hint === 'string' ? [error.hint] : [];
  return [error.message, ...hint].join('\n');
}

function isServerError(error: Error): boolean {
  return 'severity' in error && typeof error.severity === 'string';
}
