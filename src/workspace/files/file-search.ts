/** Finds files and folders of a workspace by their names. */
import { opendir } from 'node:fs/promises';
import type { WorkspaceId } from '#src/base/ids.ts';
import type { FileEntry } from '#src/contract/wire/files.ts';
import { fileFailure } from './file-failure.ts';
import { isFileName } from './file-path.ts';
import type { WorkspaceFiles } from './workspace-files.ts';

export interface FileSearch {
  /** The folder in which the search begins, as a list of names; an empty list is the folder of the workspace. */
  readonly names: readonly string[];
  /** A part of the names, in any case. */
  readonly text: string;
  /** How many folders deep the search goes; 1 reads one folder. */
  readonly depth: number;
  /** The most entries to return. */
  readonly limit: number;
  readonly findsFiles: boolean;
  readonly findsFolders: boolean;
  /** Whether names that begin with a dot are read. */
  readonly readsHidden: boolean;
}

/** A search ends after this many names. */
const MAX_SEARCHED_NAMES = 20_000;
const NAMES_AT_ONCE = 512;

/** Folders of programs. They have many files, and people do not search for these. */
const SKIPPED: ReadonlySet<string> = new Set([
  '__pycache__',
  'node_modules',
  '.git',
  '.venv',
  'site-packages',
]);

interface Found {
  readonly path: string;
  /** 0: the name equals the text; 1: the name begins with the text; 2: the name contains the text. */
  readonly rank: number;
}

/**
 * Resolves with the entries whose names have the text, best matches first. Links are neither found nor followed. Rejects with
 * `not_found` when there is no such folder. When `signal` aborts, it resolves early with a part of them.
 */
export async function searchFiles(
  files: WorkspaceFiles,
  workspaceId: WorkspaceId,
  search: FileSearch,
  signal: AbortSignal,
): Promise<FileEntry[]> {
  const { names: start, text, depth, limit, findsFiles, findsFolders, readsHidden } = search;
  const wanted = text.toLowerCase();
  let found: Found[] = [];
  const keepBest = () => {
    found = found.sort((a, b) => a.rank - b.rank || (a.path < b.path ? -1 : 1)).slice(0, limit);
  };
  let left = MAX_SEARCHED_NAMES;
  const folders: (readonly string[])[] = [start];
  for (const names of folders) {
    if (left <= 0 || signal.aborted) break;
    try {
      await using folder = await files.folder(workspaceId, names);
      for await (const entry of await opendir(folder.place, { bufferSize: NAMES_AT_ONCE })) {
        if (left-- <= 0 || signal.aborted) break;
        const { name } = entry;
        const isFolder = entry.isDirectory();
        if (!isFolder && !entry.isFile()) continue;
        if (!isFileName(name) || SKIPPED.has(name) || (!readsHidden && name.startsWith('.'))) continue;
        if (isFolder && names.length - start.length + 1 < depth) folders.push([...names, name]);
        if (!(isFolder ? findsFolders : findsFiles)) continue;
        const rank = rankOf(name.toLowerCase(), wanted);
        if (rank === undefined) continue;
        found.push({ path: [...names, name].join('/'), rank });
        if (found.length >= limit * 4) keepBest();
      }
    } catch (error) {
      // Only the first folder must exist. Others may be removed during the search, and a workspace without files has
      // no folder.
      const isStart = names === start && start.length > 0;
      if (isStart || !isGone(error)) throw fileFailure(error);
    }
  }
  keepBest();
  const entries: FileEntry[] = [];
  for (const { path } of found) {
    const entry = await files.entry(workspaceId, path).catch(() => undefined); // the entry was removed meanwhile
    if (entry !== undefined) entries.push(entry);
  }
  return entries;
}

function rankOf(name: string, wanted: string): number | undefined {
  if (name === wanted) return 0;
  if (name.startsWith(wanted)) return 1;
  return name.includes(wanted) ? 2 : undefined;
}

/** Returns whether a folder is gone, is something else now, or may not be read. */
function isGone(error: unknown): boolean {
  return ['ENOENT', 'ENOTDIR', 'ELOOP', 'EACCES'].includes(Object(error).code);
}
