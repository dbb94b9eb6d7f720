/** Errors of the protocol of PostgreSQL, told by what they have: the driver is not loaded for it. */
import { codeOf, type FailureCategory } from '../../failure.ts';

const NO_TLS = 'The server does not support SSL connections';

export function lacksTls(error: unknown): boolean {
  return error instanceof Error && error.message === NO_TLS;
}

/** A category for what concerns the connection; nothing for what concerns a statement. */
export function classifyPostgres(error: unknown): FailureCategory | undefined {
  if (!(error instanceof Error)) return undefined;
  if (isOfServer(error)) {
    const code = codeOf(error) ?? '';
    if (code.startsWith('28')) return 'authentication';
    if (code === '3D000') return 'database_missing';
    if (code === '57014') return 'cancelled';
    return code.startsWith('08') ? 'unreachable' : undefined;
  }
  if (lacksTls(error) || error.message.includes('SSL connection')) return 'tls';
  if (/^(SASL|No SASLprep)|channel binding/i.test(error.message)) return 'authentication';
  return error.message.startsWith('Connection terminated') ? 'unreachable' : undefined;
}

/** What the server says, and its hint. */
export function explainPostgres(error: unknown): string | undefined {
  if (!(error instanceof Error) || !isOfServer(error)) return undefined;
  const hint = 'hint' in error && typeof error.hint === 'string' ? [error.hint] : [];
  return [error.message, ...hint].join('\n');
}

function isOfServer(error: Error): boolean {
  return 'severity' in error && typeof error.severity === 'string';
}
