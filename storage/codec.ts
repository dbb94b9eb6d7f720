import { decode, encode } from '@msgpack/msgpack';

/** A kind of record: its name, which is part of every key, and the version with which its values are written. */
export interface RecordKind<T> {
  readonly name: string;
  readonly version: number;
  /** Returns the current form of a value of an older `version`. Absent while there is only one version. */
  readonly upgrade?: (value: unknown, version: number) => T;
}

/** Declares a kind of record. */
export function defineRecord<T>(
  name: string,
  version: number,
  upgrade?: (value: unknown, version: number) => T,
): RecordKind<T> {
  return upgrade === undefined ? { name, version } : { name, version, upgrade };
}

/** Returns `[version, value]` as MessagePack. Members that are `undefined` are omitted. */
export function encodeRecord<T>(kind: RecordKind<T>, value: T): Uint8Array {
  return encode([kind.version, value], { ignoreUndefined: true });
}

/** Returns the value in its current form. Throws when a newer release wrote it, or when it is not a record. */
export function decodeRecord<T>(kind: RecordKind<T>, bytes: Uint8Array): T {
  const envelope = decodeBytes(kind, bytes);
  if (!Array.isArray(envelope) || typeof envelope[0] !== 'number') {
    throw new Error(`A stored ${kind.name} is damaged: it has no version.`);
  }
  const [version, value] = envelope as [number, unknown];
  if (version === kind.version) return value as T;
  if (version < kind.version && kind.upgrade) return kind.upgrade(value, version);
  throw new Error(`A stored ${kind.name} has version ${version}; this release reads up to ${kind.version}.`);
}

function decodeBytes({ name }: { readonly name: string }, bytes: Uint8Array): unknown {
  try {
    return decode(bytes);
  } catch (cause) {
    throw new Error(`A stored ${name} is damaged: it is not MessagePack.`, { cause });
  }
}
