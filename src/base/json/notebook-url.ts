import { inSlices, MAX_SIZE_AT_ONCE } from '../async/slices.ts';
import { joined } from '../text/joined-bytes.ts';

/** The address of a notebook's page in a browser. It is part of API responses but is not stored, because it may change. */
export type NotebookUrl = (notebookId: string) => string;

/**
 * Returns the JSON of an object with the address added as its last member. The object is small and
 * not empty.
 */
export function withUrl(json: Uint8Array, url: string): Uint8Array {
  return Buffer.concat([json.subarray(0, -1), Buffer.from(`,"url":${JSON.stringify(url)}}`)]);
}

/**
 * Does the same as `withUrl`, but copies the JSON of a large object in slices, and then returns a
 * promise.
 */
export function withUrlInSlices(
  json: Uint8Array,
  url: string,
  workspaceId?: string,
): Uint8Array | Promise<Uint8Array> {
  if (json.byteLength > MAX_SIZE_AT_ONCE) return withMembers(json, { url }, workspaceId);
  return Buffer.concat([json.subarray(0, -1), Buffer.from(`,"url":${JSON.stringify(url)}}`)]);
}

/**
 * Resolves with the JSON of an object with further members added at its end. The object is not
 * empty; a large one is copied in slices, as work of the workspace.
 */
export function withMembers(
  json: Uint8Array,
  members: Readonly<Record<string, unknown>>,
  workspaceId?: string,
): Promise<Uint8Array> {
  const end = Buffer.from(`,${JSON.stringify(members).slice(1)}`);
  return inSlices(joined([json.subarray(0, -1), end]), workspaceId);
}
