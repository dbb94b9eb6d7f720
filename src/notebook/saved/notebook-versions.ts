/**
 * Earlier versions of saved notebooks, so that no change loses another person's work. The commit of a change also stores the
 * replaced state. If the same author made the replaced state within the last minutes, both states are one version, and nothing
 * more is stored.
 */
import { isDeepStrictEqual } from 'node:util';
import type { WorkspaceId } from '#src/base/ids.ts';
import { MAX_VERSIONS, MAX_VERSIONS_BYTES, VERSION_MS } from '#src/base/version-limits.ts';
import type { NotebookVersion } from '#src/contract/wire/notebook.ts';
import { type EncodedRecord, encodeBytesRecord } from '#storage/codec.ts';
import { unlessDamaged } from '#storage/damaged.ts';
import {
  type NotebookVersionEntry,
  notebookVersionContents,
  notebookVersions,
} from '#storage/records/notebooks.ts';
import type { Store } from '#storage/store.ts';
import type { Transaction } from '#storage/transaction.ts';
import { type NotebookDocument, titleOf } from './document.ts';

/** The author of a change, and its kind. */
export interface ChangeOrigin {
  /** The user; undefined when not known. */
  readonly by: string | undefined;
  /**
   * Whether a file or an earlier version replaces the whole notebook. The earlier state then always becomes a version.
   */
  readonly isReplacement?: boolean;
}

/** A state that a change replaces. */
export interface ReplacedState {
  readonly document: NotebookDocument;
  /** The time when the version of this state began, in milliseconds since 1970. */
  readonly versionSince: number;
}

/** An earlier version that is ready to be stored. */
export interface EncodedVersion {
  readonly entry: NotebookVersionEntry;
  readonly content: EncodedRecord<Uint8Array>;
}

/**
 * Returns whether a change at `nowMs` begins a version, so that the earlier state must be stored.
 */
export function beginsVersion(
  { document, versionSince }: ReplacedState,
  { by, isReplacement = false }: ChangeOrigin,
  nowMs: number,
): boolean {
  return isReplacement || nowMs - versionSince >= VERSION_MS || document.updatedBy !== by;
}

/** Returns whether two states differ in more than their time and author. */
export function differs(one: NotebookDocument, other: NotebookDocument): boolean {
  const { updatedAt: _, updatedBy: _by, ...a } = one;
  const { updatedAt: _also, updatedBy: _alsoBy, ...b } = other;
  return !isDeepStrictEqual(a, b);
}

/** Returns a version from a state, its JSON and the time of the change that replaces it, in steps of up to a millisecond. */
export function* encodeVersion(
  document: NotebookDocument,
  json: Uint8Array,
  replacedAt: string,
): Generator<undefined, EncodedVersion> {
  const { updatedAt, updatedBy, serialization } = document;
  const bytes = yield* encodeBytesRecord(notebookVersionContents, [json]);
  return {
    entry: {
      updatedAt,
      ...(updatedBy === undefined ? {} : { updatedBy }),
      title: titleOf(serialization),
      cellCount: serialization.cells.length,
      replacedAt,
      bytes: json.byteLength,
    },
    content: { kind: notebookVersionContents, bytes },
  };
}

/** Stores a version, and removes the oldest ones beyond the limits. */
export function putVersion(
  tx: Transaction,
  workspaceId: WorkspaceId,
  notebookId: string,
  { entry, content }: EncodedVersion,
): void {
  const before = entriesIn(tx, workspaceId, notebookId);
  const kept: NotebookVersionEntry[] = [entry];
  let { bytes } = entry;
  for (const earlier of before.toReversed()) {
    bytes += earlier.bytes;
    if (kept.length >= MAX_VERSIONS || bytes > MAX_VERSIONS_BYTES) break;
    kept.unshift(earlier);
  }
  for (const { updatedAt } of before.slice(0, before.length + 1 - kept.length))
    tx.remove(notebookVersionContents, workspaceId, notebookId, updatedAt);
  tx.putEncoded(content, workspaceId, notebookId, entry.updatedAt);
  tx.put(notebookVersions, kept, workspaceId, notebookId);
}

/** A damaged list counts as empty, so that the notebook itself can still be changed. */
function entriesIn(
  store: Pick<Store, 'get'> | Transaction,
  workspaceId: string,
  notebookId: string,
): readonly NotebookVersionEntry[] {
  return unlessDamaged(() => store.get(notebookVersions, workspaceId, notebookId)) ?? [];
}

/** Returns the earlier versions of a notebook, newest first. */
export function earlierVersions(
  store: Store,
  workspaceId: WorkspaceId,
  notebookId: string,
): NotebookVersion[] {
  return entriesIn(store, workspaceId, notebookId)
    .toReversed()
    .map(({ updatedAt, updatedBy, title, cellCount }) => ({
      updatedAt,
      ...(updatedBy === undefined ? {} : { updatedBy }),
      title,
      cellCount,
      isCurrent: false,
    }));
}

/** Removes some versions of a deleted notebook, in one commit. Returns whether no versions were left. */
export function removeSomeVersions(
  store: Store,
  workspaceId: WorkspaceId,
  notebookId: string,
  limit: number,
): boolean {
  const found = [...store.listKeys(notebookVersionContents, workspaceId, [notebookId], limit)];
  if (found.length === 0) return true;
  store.write((tx) => {
    for (const ids of found) tx.remove(notebookVersionContents, workspaceId, ...ids);
  });
  return false;
}
