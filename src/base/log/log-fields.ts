/**
 * Reduces values for the log. Errors and requests are reduced to known members, members with the name of a secret are
 * hidden at any depth, and credentials are removed from all text.
 */

import { Secret } from '../caller/secret.ts';
import { cutText } from '../text/cut-text.ts';

/** The members of one line of the log. */
export type Fields = Readonly<Record<string, unknown>>;

const HIDDEN = '[secret]';
const MAX_DEPTH = 6;
const MAX_TEXT_LENGTH = 8192;

const SECRET_NAME =
  /^(authorization|proxy-?authorization|cookie|set-?cookie|connection|env|headers|body)$|(token|secret|password|passwd|passphrase|credentials?|api_?key|private_?key|access_?key|connection_?string|dsn)$/i;
const REQUEST_MEMBERS = ['method', 'path', 'route', 'status', 'durationMs', 'bytes', 'requestId'] as const;

/** Returns the text without anything that looks like a credential, and without the known secrets. */
export type Scrubber = (text: string) => string;

/** Returns a scrubber that also hides `literals`, wherever they appear. */
export function scrubber(literals: readonly Secret[]): Scrubber {
  const values = literals.map((literal) => literal.reveal()).filter((value) => value.length >= 6);
  return (text) => {
    let clean = text.length > MAX_TEXT_LENGTH ? `${cutText(text, 0, MAX_TEXT_LENGTH)}…` : text;
    for (const value of values) clean = clean.replaceAll(value, HIDDEN);
    return clean
      .replace(/\btr[ps]_[\w-]{8,}/g, HIDDEN)
      .replace(/\bsk-[\w-]{12,}/g, HIDDEN)
      .replace(/\b(bearer|basic)\s+[\w.~+/=-]{8,}/gi, `$1 ${HIDDEN}`)
      .replace(/(\b[a-z][a-z0-9+.-]*:\/\/)[^\s/@"']+@/gi, `$1${HIDDEN}@`)
      .replace(/\b(password|passwd|pwd|secret|api_?key)(\s*[=:]\s*)[^\s,;&"']+/gi, `$1$2${HIDDEN}`);
  };
}

/** Returns a copy of JSON in which no text holds a credential or one of the secrets, at any depth. */
export function scrubbedValue(value: unknown, secrets: readonly Secret[]): unknown {
  const scrub = scrubber(secrets);
  const copy = (part: unknown): unknown => {
    if (typeof part === 'string') return scrub(part);
    if (Array.isArray(part)) return part.map(copy);
    if (typeof part !== 'object' || part === null) return part;
    return Object.fromEntries(Object.entries(part).map(([name, member]) => [name, copy(member)]));
  };
  return copy(value);
}

/** Returns a copy of `fields` that is safe to write. */
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
  if (depth >= MAX_DEPTH) return '[deep]';
  if (Array.isArray(value)) return value.map((entry) => visible(entry, scrub, depth + 1));
  if (value instanceof Map || value instanceof Set) return `[${value.size} entries]`;
  return visibleMembers(value, scrub, depth);
}

/** Returns type, code, message, stack and cause; libraries attach other members that may hold secrets. */
function visibleError(error: Error, scrub: Scrubber, depth: number): Record<string, unknown> {
  return {
    type: error.name,
    ...('code' in error && typeof error.code === 'string' && { code: error.code }),
    message: scrub(error.message),
    ...(error.stack !== undefined && { stack: scrub(error.stack) }),
    ...(error.cause !== undefined && depth < MAX_DEPTH && { cause: visible(error.cause, scrub, depth + 1) }),
  };
}

function visibleRequest(request: unknown, scrub: Scrubber): Record<string, unknown> {
  const members = new Map(Object.entries(request ?? {}));
  const present = REQUEST_MEMBERS.filter((name) => members.has(name));
  return Object.fromEntries(present.map((name) => [name, visible(members.get(name), scrub, MAX_DEPTH)]));
}
