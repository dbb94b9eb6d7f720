import { AppError } from '#src/base/errors/errors.ts';
import { mediaTypeOf } from '#src/http/reply/content-headers.ts';
import type { ReadWorkspaceFile } from '#src/notebook/saved/notebook-files.ts';
import { readUpTo } from '#src/workspace/files/read-up-to.ts';
import { WorkspaceFiles } from '#src/workspace/files/workspace-files.ts';
import type { DataDirectory } from '#storage/disk/data-directory.ts';

/** Returns the function that reads the files to which the outputs of an exported notebook refer. No link is followed. */
export function workspaceFileReader(directory: Pick<DataDirectory, 'workspaceFilesPath'>): ReadWorkspaceFile {
  const files = new WorkspaceFiles((workspaceId) => directory.workspaceFilesPath(workspaceId));
  return async (workspaceId, path, maxBytes) => {
    try {
      const { handle, size } = await files.open(workspaceId, path);
      try {
        if (size > maxBytes) return undefined;
        const bytes = await readUpTo(handle, size + 1);
        if (bytes.byteLength > maxBytes) return undefined; // notebook code may write to this file
        return { bytes, type: mediaTypeOf(path) ?? 'application/octet-stream' };
      } finally {
        await handle.close();
      }
    } catch (error) {
      if (error instanceof AppError) return undefined; // there is no such file
      throw error;
    }
  };
}
