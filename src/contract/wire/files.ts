/** Files of a workspace. */
import Type from 'typebox';
import { closed, nullable, oneOf, Timestamp, type Wire } from './shape.ts';

export const FileEntrySchema = Type.Object(
  {
    path: Type.String({
      description: 'The path, relative to the folder of the workspace. The path of a folder ends in a slash.',
    }),
    type: oneOf(['file', 'folder']),
    bytes: nullable(Type.Integer({ description: 'The size of the file; null for a folder.' })),
    updatedAt: Timestamp,
    etag: nullable(Type.String({ description: 'The entity tag of the file; null for a folder.' })),
  },
  { $id: 'FileEntry', ...closed },
);
export type FileEntry = Wire<typeof FileEntrySchema>;

export const FileListQuery = Type.Object(
  {
    prefix: Type.Optional(
      Type.String({
        maxLength: 1024,
        description:
          'The beginning of the paths: `data/` lists the folder `data`, `data/2026` lists the names in it ' +
          'that begin with `2026`. Omitted: the folder of the workspace. Folders are listed without their ' +
          'content.',
      }),
    ),
    after: Type.Optional(
      Type.String({
        minLength: 1,
        maxLength: 1024,
        description: 'The `nextCursor` of the page before; omitted for the first page.',
      }),
    ),
    limit: Type.Integer({
      minimum: 1,
      maximum: 1000,
      default: 100,
      description: 'The largest number of entries to return.',
    }),
  },
  closed,
);
export type FileListOptions = Wire<typeof FileListQuery>;
