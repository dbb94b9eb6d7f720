/**
 * Long strings that one request puts into several messages and records: the JSON of each, its digest and its checksum in records are
 * made once and in slices, before anything is decided.
 */
import { createHash } from 'node:crypto';
import { inSlices } from '../async/slices.ts';
import { rememberChecksum } from '../text/checksum.ts';
import { EncodedJson, preparedJson, writeJson } from './json-write.ts';

const MAX_SHORT_CHARS = 64 * 1024;

export interface LongString {
  readonly json: EncodedJson;
  /** The SHA-256 of the string's JSON. */
  readonly digest: string;
}

interface Prepared extends LongString {
  users: number;
}

const NOTHING: Disposable = { [Symbol.dispose]: () => undefined };

/**
 * The long strings in use, by their text. All apps of the process share them, because the JSON of a text is
 * the same in each app.
 */
const prepared = new Map<string, Prepared>();

export function isLongString(text: string): boolean {
  return text.length > MAX_SHORT_CHARS;
}

/**
 * Returns a string as JSON and its digest, in steps of up to a millisecond. A prepared string takes no step.
 */
export function* encodeLongString(text: string): Generator<undefined, LongString> {
  const known = prepared.get(text);
  if (known !== undefined) return known;
  const pieces = yield* writeJson(text);
  const hash = createHash('sha256');
  for (const piece of pieces) {
    hash.update(piece);
    rememberChecksum(piece);
    yield;
  }
  return { json: new EncodedJson(pieces), digest: hash.digest('hex') };
}

/**
 * Resolves once the long strings among `texts` are prepared. They stay prepared until the result is
 * disposed of. `workspaceId` names the workspace whose work this is.
 */
export async function prepareStrings(texts: Iterable<string>, workspaceId?: string): Promise<Disposable> {
  const long = [...texts].filter(isLongString);
  return long.length === 0 ? NOTHING : inSlices(preparing(long), workspaceId);
}

/** Prepares strings as `prepareStrings` does, in steps of up to a millisecond, and returns the disposable. */
export function* preparing(texts: readonly string[]): Generator<undefined, Disposable> {
  const done: string[] = [];
  let isComplete = false;
  try {
    for (const text of texts.filter(isLongString)) {
      const { json, digest } = yield* encodeLongString(text);
      const users = prepared.get(text)?.users ?? 0;
      prepared.set(text, { json, digest, users: users + 1 });
      preparedJson.set(text, json);
      done.push(text);
    }
    isComplete = true;
    return { [Symbol.dispose]: () => release(done.splice(0)) };
  } finally {
    if (!isComplete) release(done); // the caller no longer waits
  }
}

function release(texts: readonly string[]): void {
  for (const text of texts) {
    const known = prepared.get(text);
    if (known === undefined || --known.users > 0) continue;
    prepared.delete(text);
    preparedJson.delete(text);
  }
}
