/** Pages of a folder, in the order of the names. A page reads all names of the folder and keeps few of them. */

import { lstat, opendir, unlink } from 'node:fs/promises';
import { unawaited } from '#src/base/async/unawaited.ts';
import { AppError } from '#src/base/errors/errors.ts';
import type { WorkspaceId } from '#src/base/ids.ts';
import type { FileEntry, FileListOptions } from '#src/contract/wire/files.ts';
import type { Page } from '#src/contract/wire/shape.ts';
import { fileFailure } from './file-failure.ts';
import { isFileName, parsePrefix, UPLOAD_PREFIX } from './file-path.ts';
import { entryOf } from './file-record.ts';
import type { Folder } from './folder.ts';
import type { WorkspaceFiles } from './workspace-files.ts';

const NAMES_AT_ONCE = 512;

/**
 * Returns a page of the folder that the prefix names. Leaves out links, pipes and devices, and names that cannot be
 * part of a request. Rejects with `not_found` when there is no such folder. When `signal` aborts, it resolves early
 * with a part of the page, because the client has left.
 */
export async function listFiles(
  files: WorkspaceFiles,
  workspaceId: WorkspaceId,
  { prefix = '', after, limit }: FileListOptions,
  signal: AbortSignal,
): Promise<Page<FileEntry>> {
  const { folder: names, start } = parsePrefix(prefix);
  const base = names.length === 0 ? '' : `${names.join('/')}/`;
  if (after !== undefined && !after.startsWith(base))
    throw new AppError('invalid_cursor', 'The cursor belongs to the list of another folder.');
  const passed = after?.slice(base.length).replace(/\/$/, '') ?? '';
  try {
    await using folder = await files.folder(workspaceId, names);
    const first = await firstNames(folder, limit + 1, signal, (name) => {
      if (isLeftOver(files, name))
        unawaited(
          unlink(folder.at(name)).catch(() => {}),
          'file-list: the removal of a left-over file',
        );
      return isFileName(name) && name > passed && name.startsWith(start);
    });
    const statuses = await Promise.all(
      first.slice(0, limit).map((name) => lstat(folder.at(name), { bigint: true }).catch(() => undefined)),
    );
    const items = statuses.flatMap((status, i) => {
      const entry = status && entryOf(base + first[i]!, status);
      return entry === undefined ? [] : [entry];
    });
    return { items, nextCursor: first.length > limit ? base + first[limit - 1]! : null };
  } catch (error) {
    // Nothing was ever stored in this workspace.
    if (names.length === 0 && Object(error).code === 'ENOENT') return { items: [], nextCursor: null };
    throw fileFailure(error);
  }
}

/**
 * Returns the first `count` of the names for which `isWanted` returns true, sorted. When `signal` aborts, these are
 * the first of the names that were read so far.
 */
async function firstNames(
  folder: Folder,
  count: number,
  signal: AbortSignal,
  isWanted: (name: string) => boolean,
): Promise<string[]> {
  let names: string[] = [];
  const keepFirst = () => {
    names = names.sort((a, b) => (a < b ? -1 : 1)).slice(0, count);
  };
  for await (const { name } of await opendir(folder.place, { bufferSize: NAMES_AT_ONCE })) {
    if (signal.aborted) break;
    if (!isWanted(name)) continue;
    names.push(name);
    if (names.length >= count * 4) keepFirst();
  }
  keepFirst();
  return names;
}

/** Returns whether this is a partial file whose upload ended when an earlier server ended. */
function isLeftOver(files: WorkspaceFiles, name: string): boolean {
  return name.startsWith(UPLOAD_PREFIX) && !files.isUploading(name);
}
