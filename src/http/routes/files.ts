import { listFiles } from '#src/files/file-list.ts';
import type { OpenFile, WorkspaceFiles } from '#src/files/workspace-files.ts';
import { FileEntrySchema, FileListQuery } from '#src/wire/files.ts';
import { pageSchema } from '#src/wire/shape.ts';
import { attachment, describeFile } from '../reply/content-headers.ts';
import { CONTENT_HEADERS, fileReply } from '../reply/content-reply.ts';
import { ETAG_HEADER, NOT_MODIFIED, requireState, tagged, WRITE_CONDITIONS } from '../reply/entity-tag.ts';
import { json, noContent, ok } from '../reply/reply.ts';
import { defineRoute, type Route } from '../route.ts';

const PATH = '/api/v3/files/:path*';

const HEADERS = {
  ...ETAG_HEADER,
  'content-disposition': '`inline` for plain images and plain text, otherwise `attachment`.',
  'accept-ranges': '`bytes`: ranges can be requested.',
};

/** The files of a workspace: what notebooks find in their working directory, and what they leave there. */
export function fileRoutes(files: WorkspaceFiles, maxFileBytes: number): readonly Route[] {
  return [
    defineRoute({
      method: 'GET',
      path: '/api/v3/files',
      operationId: 'listFiles',
      summary: 'List the files of a folder, by name',
      description:
        'A page has the files and folders in one folder. Links, pipes and devices are left out. A page may have fewer ' +
        'items than `limit` and still a `nextCursor`.',
      tags: ['Files'],
      access: { action: 'file.read' },
      query: FileListQuery,
      responses: {
        200: { description: 'A page of the folder.', schema: pageSchema('FilePage', FileEntrySchema) },
      },
      errors: ['invalid_cursor', 'not_found', 'file_inaccessible'],
      handle: async ({ principal, query, signal }) =>
        ok(await listFiles(files, principal.workspaceId, query, signal)),
    }),
    defineRoute({
      method: 'GET',
      path: PATH,
      operationId: 'getFile',
      summary: 'Read a file',
      description:
        'Sends the bytes of the file. The media type follows from the ending of its name. A file that becomes shorter while ' +
        'it is sent ends the connection, so that nobody takes it for whole.',
      tags: ['Files'],
      access: { action: 'file.read' },
      readsStoreOnly: true,
      headers: CONTENT_HEADERS,
      responses: {
        200: { description: 'The whole file.', contentType: '*/*', headers: HEADERS },
        206: {
          description: 'The requested range.',
          contentType: '*/*',
          headers: { ...HEADERS, 'content-range': 'Which bytes these are, and how many there are in total.' },
        },
        304: NOT_MODIFIED,
      },
      errors: ['range_not_satisfiable', 'not_a_file', 'file_inaccessible', 'stale_update'],
      async handle({ principal, params, headers, headOnly }) {
        const file = await files.open(principal.workspaceId, params.path);
        return fileReply({ ...contentOf(file), ...describe(params.path) }, headers, headOnly);
      },
    }),
    defineRoute({
      method: 'PUT',
      path: PATH,
      operationId: 'putFile',
      summary: 'Store a file',
      description:
        'The body is the bytes of the file, of any type. They replace the file that is there, if any, at once and as a ' +
        'whole; missing folders are made. With `If-None-Match: *` nothing is replaced.',
      tags: ['Files'],
      access: { action: 'file.write' },
      takesBytes: true,
      bodyLimitBytes: maxFileBytes,
      headers: WRITE_CONDITIONS,
      responses: {
        200: { description: 'The file was replaced.', schema: FileEntrySchema, headers: ETAG_HEADER },
        201: {
          description: 'The file is new.',
          schema: FileEntrySchema,
          headers: { ...ETAG_HEADER, location: 'The path of the file in this API.' },
        },
      },
      errors: [
        'not_a_file',
        'file_inaccessible',
        'precondition_failed',
        'stale_update',
        'body_too_large',
        'file_quota_exceeded',
      ],
      async handle({ principal, params: { path }, headers, content }) {
        const { entry, isNew } = await files.write(principal.workspaceId, path, content, (etag, isTaken) =>
          requireState(headers, () => etag, isTaken),
        );
        const location = `/api/v3/files/${path.split('/').map(encodeURIComponent).join('/')}`;
        return tagged(json(isNew ? 201 : 200, entry, isNew ? { location } : {}), entry.etag ?? '');
      },
    }),
    defineRoute({
      method: 'DELETE',
      path: PATH,
      operationId: 'deleteFile',
      summary: 'Delete a file, or an empty folder',
      description:
        'A path that ends in a slash deletes the folder, which must be empty. A link is deleted, not followed.',
      tags: ['Files'],
      access: { action: 'file.write' },
      headers: WRITE_CONDITIONS,
      responses: { 204: { description: 'The file was deleted.' } },
      errors: ['not_a_file', 'file_inaccessible', 'precondition_failed'],
      async handle({ principal, params, headers }) {
        await files.delete(principal.workspaceId, params.path, (etag, isTaken) =>
          requireState(headers, () => etag, isTaken),
        );
        return noContent();
      },
    }),
  ];
}

function contentOf({ handle, size, etag }: OpenFile) {
  return {
    sizeBytes: size,
    etag,
    async read(offset: number, length: number) {
      const { buffer, bytesRead } = await handle.read(Buffer.allocUnsafe(length), 0, length, offset);
      return buffer.subarray(0, bytesRead);
    },
    close: () => handle.close(),
  };
}

function describe(path: string) {
  const name = path.slice(path.lastIndexOf('/') + 1);
  const { contentType, disposition } = describeFile(name);
  return {
    contentType,
    headers: {
      'content-disposition': disposition === 'inline' ? disposition : attachment(name),
      'content-security-policy': "sandbox; default-src 'none'",
      'cache-control': 'private, no-cache',
    },
  };
}
