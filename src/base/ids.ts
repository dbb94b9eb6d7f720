import { randomFillSync } from 'node:crypto';

declare const brand: unique symbol;
type Id<Kind extends string> = string & { readonly [brand]: Kind };

/** Ids of resources. The brand prevents an id of one kind from being used as an id of another. */
export type WorkspaceId = Id<'workspace'>;
export type UserId = Id<'user'>;
export type TokenId = Id<'token'>;
export type NotebookId = Id<'notebook'>;
export type EnvironmentId = Id<'environment'>;
/** A notebook session's id is its notebook's id; a standalone agent session's is a conversation id. */
export type SessionId = Id<'session'>;
export type RunId = Id<'run'>;
export type AssetId = Id<'asset'>;
export type EntryId = Id<'entry'>;
export type JobId = Id<'job'>;
export type OccurrenceId = Id<'occurrence'>;
export type HookId = Id<'hook'>;
export type DeliveryId = Id<'delivery'>;
export type HookInId = Id<'hookIn'>;

const PREFIXES = {
  workspace: 'ws',
  token: 'tok',
  notebook: 'nb',
  environment: 'env',
  run: 'run',
  conversation: 'conv',
  entry: 'ent',
  datasource: 'ds',
  asset: 'asset',
  request: 'req',
  audit: 'aud',
  job: 'job',
  occurrence: 'occ',
  hook: 'hook',
  hookEvent: 'hev',
  delivery: 'dlv',
  hookIn: 'hin',
} as const;

export type IdKind = keyof typeof PREFIXES;

const ALPHABET = '0123456789abcdefghjkmnpqrstvwxyz';
const TIME_DIGITS = 10;
const RANDOM_DIGITS = 16;
const MAX_TIME_MS = 32 ** TIME_DIGITS - 1;

/**
 * Random bytes that no id has used yet. Asking the system for a few bytes costs as much as asking
 * for many.
 */
const random = Buffer.alloc(256 * RANDOM_DIGITS);
let randomUsed = random.length;

/** All apps of the process share this state, because the ids of one process strictly increase. */
let lastMs = 0;
const tail = new Uint8Array(RANDOM_DIGITS);

/**
 * Returns a new id such as `run_01jd3v…`: a prefix, 48 bits of time, and 79 random bits, in base 32. The alphabet is in
 * byte order, and the ids of one process strictly increase, so sorting ids sorts resources by age.
 */
export function newId<T extends string>(kind: IdKind, nowMs = Date.now()): T {
  if (nowMs > lastMs) {
    lastMs = nowMs;
    if (randomUsed === random.length) {
      randomFillSync(random);
      randomUsed = 0;
    }
    for (let i = 0; i < RANDOM_DIGITS; i++) tail[i] = random[randomUsed++]! & 31;
    // The top bit starts clear, so that counting up within one millisecond cannot overflow the
    // random part.
    tail[0]! &= 15;
  } else {
    for (let i = RANDOM_DIGITS - 1; i >= 0 && ++tail[i]! === 32; i--) tail[i] = 0;
  }
  let text = timeText(lastMs);
  for (let i = 0; i < RANDOM_DIGITS; i++) text += ALPHABET[tail[i]!];
  return `${PREFIXES[kind]}_${text}` as T;
}

/**
 * Makes all further ids of this process greater than `id`, which an earlier process may have made when the clock was ahead. Call it
 * with the newest id of a list to which this process adds.
 */
export function continueAfter(id: string): void {
  const ms = timeOfId(id);
  if (ms >= lastMs) newId('request', ms + 1); // with new random digits: other processes may continue after the same id
}

/** Returns the time of an id that `newId` made, in milliseconds since 1970. */
export function timeOfId(id: string): number {
  return timeOfText(id.slice(id.indexOf('_') + 1));
}

/**
 * Returns the time at the beginning of a text, which `timeText` made, in milliseconds since 1970.
 */
export function timeOfText(text: string): number {
  let ms = 0;
  for (let i = 0; i < TIME_DIGITS && i < text.length; i++) ms = ms * 32 + ALPHABET.indexOf(text.charAt(i));
  return ms;
}

/**
 * Returns a text that sorts before every id of this kind that was made at `ms` or later, and after all
 * earlier ids.
 */
export function firstIdAt(kind: IdKind, ms: number): string {
  return `${PREFIXES[kind]}_${timeText(ms)}`;
}

/** Returns a text that sorts after every id of this kind. */
export function lastIdOf(kind: IdKind): string {
  return `${PREFIXES[kind]}_~`;
}

/** Returns a time in milliseconds since 1970 as text of fixed width, which sorts by time. */
export function timeText(ms: number): string {
  let text = '';
  for (
    let i = 0, rest = Math.min(Math.max(ms, 0), MAX_TIME_MS);
    i < TIME_DIGITS;
    i++, rest = Math.floor(rest / 32)
  ) {
    text = ALPHABET[rest % 32] + text;
  }
  return text;
}

/** Returns whether the text has the form of the texts that `timeText` makes. */
export function isTimeText(text: string): boolean {
  return /^[0-9a-hjkmnp-tv-z]{10}$/.test(text);
}

/** Returns whether the text has the form of the ids of this kind. */
export function isIdOf(kind: IdKind, text: string): boolean {
  const prefix = `${PREFIXES[kind]}_`;
  return text.startsWith(prefix) && /^[0-9a-hjkmnp-tv-z]{26}$/.test(text.slice(prefix.length));
}

/** Returns whether a path segment could be an id. Others get a 404 without a look into the store. */
export function isPlausibleId(text: string): boolean {
  return text.length > 0 && text.length <= 200 && /^[A-Za-z0-9._:@-]+$/.test(text);
}

/** Returns the id of a notebook's session, which is the id of the notebook. */
export function sessionIdOf(notebookId: NotebookId): SessionId {
  const id: string = notebookId;
  return id as SessionId;
}
