/**
 * What of a logged value may be seen. Errors and requests are cut down to named members, members whose name says that
 * they hold a secret are hidden at any depth, and text is cleared of credentials wherever it stands.
 */
import { Secret } from './secret.ts';

export type Fields = Readonly<Record<string, unknown>>;

const HIDDEN = '[secret]';
const DEPTH_LIMIT = 6;
const TEXT_LIMIT = 8192;

const SECRET_NAME =
  /^(authorization|proxy-?authorization|cookie|set-?cookie|connection|env|headers|body)$|(token|secret|password|passwd|passphrase|credentials?|api_?key|private_?key|access_?key|connection_?string|dsn)$/i;
const REQUEST_MEMBERS = ['method', 'path', 'route', 'status', 'durationMs', 'bytes', 'requestId'] as const;

/** Clears text of whatever looks like a credential, and of the secrets given literally. */
export type Scrubber = (text: string) => string;

/** `literals` are hidden wherever they appear. */
export function scrubber(literals: readonly Secret[]): Scrubber {
  const values = literals.map((literal) => literal.reveal()).filter((value) => value.length >= 6);
  return (text) => {
    let clean = text.length > TEXT_LIMIT ? `${text.slice(0, TEXT_LIMIT)}…` : text;
    for (const value of values) clean = clean.replaceAll(value, HIDDEN);
    return clean
      .replace(/\btrp_[\w-]{8,}/g, HIDDEN)
      .replace(/\bsk-[\w-]{12,}/g, HIDDEN)
      .replace(/\b(bearer|basic)\s+[\w.~+/=-]{8,}/gi, `$1 ${HIDDEN}`)
      .replace(/(\b[a-z][a-z0-9+.-]*:\/\/)[^\s/@"']+@/gi, `$1${HIDDEN}@`)
      .replace(/\b(password|passwd|pwd|secret|api_?key)(\s*[=:]\s*)[^\s,;&"']+/gi, `$1$2${HIDDEN}`);
  };
}

/** A copy of `fields` that is safe to write. */
export function visibleFields(fields: Fields, scrub: Scrubber): Record<string, unknown> {
  return visibleMembers(fields, scrub, 0);
}

function visibleMembers(members: object, scrub: Scrubber, depth: number): Record<string, unknown> {
  const shown: Record<string, unknown> = {};
  for (const [name, value] of Object.entries(members)) {
    if (value === undefined || typeof value === 'function') continue;
    if (name === 'request') shown[name] = visibleRequest(value, scrub);
    else shown[name] = SECRET_NAME.test(name) ? HIDDEN : visible(value, scrub, depth + 1);
  }
  return shown;
}

function visible(value: unknown, scrub: Scrubber, depth: number): unknown {
  if (typeof value === 'string') return scrub(value);
  if (typeof value === 'bigint' || typeof value === 'symbol') return String(value);
  if (typeof value !== 'object' || value === null) return value;
  if (value instanceof Secret) return HIDDEN;
  if (value instanceof Error) return visibleError(value, scrub, depth);
  if (value instanceof Date) return value.toISOString();
  if (ArrayBuffer.isView(value)) return `[${value.byteLength} bytes]`;
  if (depth >= DEPTH_LIMIT) return '[deep]';
  if (Array.isArray(value)) return value.map((entry) => visible(entry, scrub, depth + 1));
  if (value instanceof Map || value instanceof Set) return `[${value.size} entries]`;
  return visibleMembers(value, scrub, depth);
}

/** Type, code, message, stack and cause; anything else that a library hangs on its errors stays out. */
function visibleError(error: Error, scrub: Scrubber, depth: number): Record<string, unknown> {
  return {
    type: error.name,
    ...('code' in error && typeof error.code === 'string' && { code: error.code }),
    message: scrub(error.message),
    ...(error.stack !== undefined && { stack: scrub(error.stack) }),
    ...(error.cause !== undefined &&
      depth < DEPTH_LIMIT && { cause: visible(error.cause, scrub, depth + 1) }),
  };
}

function visibleRequest(request: unknown, scrub: Scrubber): Record<string, unknown> {
  const members = new Map(Object.entries(request ?? {}));
  const present = REQUEST_MEMBERS.filter((name) => members.has(name));
  return Object.fromEntries(present.map((name) => [name, visible(members.get(name), scrub, DEPTH_LIMIT)]));
}
