import { decode, encode } from '@msgpack/msgpack';

/** A kind of stored value: its place in every key, and the version its values are written with. */
export interface RecordKind<T> {
  readonly name: string;
  readonly version: number;
  /** Turns a value of an older version into today's; called with that version. Absent while there is only one. */
  readonly upgrade?: (value: unknown, version: number) => T;
}

export function defineRecord<T>(
  name: string,
  version: number,
  upgrade?: (value: unknown, version: number) => T,
): RecordKind<T> {
  return upgrade === undefined ? { name, version } : { name, version, upgrade };
}

/** MessagePack of `[version, value]`. Members that are `undefined` are left out. */
export function encodeRecord<T>(kind: RecordKind<T>, value: T): Uint8Array {
  return encode([kind.version, value], { ignoreUndefined: true });
}

/** Throws when the value was written by a newer release or is not a record at all. */
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
