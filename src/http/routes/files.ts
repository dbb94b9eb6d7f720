import { OPERATIONS } from '#src/contract/wire/operations/table.ts';
import { pathOf } from '#src/contract/wire/paths.ts';
import { listFiles } from '#src/workspace/files/file-list.ts';
import type { OpenFile, WorkspaceFiles } from '#src/workspace/files/workspace-files.ts';
import { attachment, describeFile } from '../reply/content-headers.ts';
import { fileReply } from '../reply/content-reply.ts';
import { requireState, tagged } from '../reply/entity-tag.ts';
import { json, noContent, ok } from '../reply/reply.ts';
import { defineRoute, type Route } from '../route.ts';

/** The files of a workspace: the working directory of its notebooks. */
export function fileRoutes(files: WorkspaceFiles, maxFileBytes: number): readonly Route[] {
  return [
    defineRoute({
      ...OPERATIONS.listFiles,
      summary: 'List the files of a folder, by name',
      description:
        'A page has the files and folders in one folder. Links, pipes and devices are left out. A page may have fewer ' +
        'items than `limit` and still a `nextCursor`.',
      tags: ['Files'],
      access: { action: 'file.read' },
      errors: ['invalid_cursor', 'not_found', 'file_inaccessible'],
      handle: async ({ principal, query, signal }) =>
        ok(await listFiles(files, principal.workspaceId, query, signal)),
    }),
    defineRoute({
      ...OPERATIONS.getFile,
      summary: 'Read a file',
      description:
        'Sends the bytes of the file. The extension of its name determines the media type. If the file ' +
        'becomes shorter while it is sent, the connection ends, so that the client notices that the file ' +
        'is incomplete.',
      tags: ['Files'],
      access: { action: 'file.read' },
      readsStoreOnly: true,
      errors: ['range_not_satisfiable', 'not_a_file', 'file_inaccessible', 'stale_update'],
      async handle({ principal, params, headers, headOnly }) {
        const file = await files.open(principal.workspaceId, params.path);
        return fileReply(
          { ...fileContent(file, params.path), headers: safeHeaders(params.path) },
          headers,
          headOnly,
        );
      },
    }),
    defineRoute({
      ...OPERATIONS.putFile,
      summary: 'Store a file',
      description:
        'The body is the bytes of the file, of any type. An existing file is replaced at once and as a ' +
        'whole; missing folders are made. With `If-None-Match: *` nothing is replaced.',
      tags: ['Files'],
      access: { action: 'file.write' },
      bodyLimitBytes: maxFileBytes,
      errors: [
        'not_a_file',
        'file_inaccessible',
        'precondition_failed',
        'stale_update',
        'body_too_large',
        'file_quota_exceeded',
      ],
      async handle({ principal, params: { path }, headers, content }) {
        const { entry, isNew } = await files.write(
          principal.workspaceId,
          path,
          content,
          ({ etag, isTaken }) => requireState(headers, () => etag, isTaken),
        );
        const location = pathOf('getFile', { path });
        return tagged(json(isNew ? 201 : 200, entry, isNew ? { location } : {}), entry.etag ?? '');
      },
    }),
    defineRoute({
      ...OPERATIONS.deleteFile,
      summary: 'Delete a file, or an empty folder',
      description:
        'A path that ends in a slash deletes the folder, which must be empty. A link is deleted, not followed.',
      tags: ['Files'],
      access: { action: 'file.write' },
      errors: ['not_a_file', 'file_inaccessible', 'precondition_failed'],
      async handle({ principal, params, headers }) {
        await files.delete(principal.workspaceId, params.path, ({ etag, isTaken }) =>
          requireState(headers, () => etag, isTaken),
        );
        return noContent();
      },
    }),
  ];
}

/** Returns the content of a file for a reply. The ending of its name determines its media type. */
export function fileContent({ handle, size, etag }: OpenFile, path: string) {
  return {
    sizeBytes: size,
    etag,
    contentType: describeFile(nameOf(path)).contentType,
    async read(offset: number, length: number) {
      const { buffer, bytesRead } = await handle.read(Buffer.allocUnsafe(length), 0, length, offset);
      return buffer.subarray(0, bytesRead);
    },
    close: () => handle.close(),
  };
}

/** Returns the headers with which a file runs no script in the origin of this server. */
export function safeHeaders(path: string) {
  const name = nameOf(path);
  const { disposition } = describeFile(name);
  return {
    'content-disposition': disposition === 'inline' ? disposition : attachment(name),
    'content-security-policy': "sandbox; default-src 'none'",
    'cache-control': 'private, no-cache',
  };
}

function nameOf(path: string): string {
  return path.slice(path.lastIndexOf('/') + 1);
}
