/** An entry of a folder, in the form that requests see. */
import type { BigIntStats } from 'node:fs';
import type { FileEntry } from '#src/contract/wire/files.ts';

/**
 * Returns the entity tag of a file in this state. Every write moves `ctime`, which programs cannot set; replacing the file
 * changes its inode.
 */
export function fileTag({ ino, size, mtimeNs, ctimeNs }: BigIntStats): string {
  return `"${[ino, size, mtimeNs, ctimeNs].map((part) => part.toString(36)).join('-')}"`;
}

/** Returns the record of a file or folder; undefined for anything else. */
export function entryOf(path: string, status: BigIntStats): FileEntry | undefined {
  const updatedAt = timestamp(status.mtimeMs);
  if (status.isDirectory()) return { path: `${path}/`, type: 'folder', bytes: null, updatedAt, etag: null };
  if (!status.isFile()) return undefined;
  return { path, type: 'file', bytes: Number(status.size), updatedAt, etag: fileTag(status) };
}

/** 9999-12-31T23:59:59.999Z. Programs can set any time, and RFC 3339 has no later one. */
const LAST_TIME_MS = 253_402_300_799_999;

function timestamp(ms: bigint): string {
  return new Date(Math.min(Math.max(Number(ms), 0), LAST_TIME_MS)).toISOString();
}
