import { FileEntrySchema, FileListQuery } from '../files.ts';
import { pageSchema } from '../shape.ts';
import { declareOperations } from './operation.ts';
import { CONTENT_HEADERS, ETAG_HEADER, NOT_MODIFIED, WRITE_CONDITIONS } from './parts.ts';

const FILE_HEADERS = {
  ...ETAG_HEADER,
  'content-disposition': '`inline` for plain images and plain text, otherwise `attachment`.',
  'accept-ranges': '`bytes`: ranges can be requested.',
};

/** The files of a workspace. */
export const FILE_OPERATIONS = declareOperations({
  listFiles: {
    query: FileListQuery,
    responses: {
      200: { description: 'A page of the folder.', schema: pageSchema('FilePage', FileEntrySchema) },
    },
  },
  getFile: {
    headers: CONTENT_HEADERS,
    responses: {
      200: { description: 'The whole file.', contentType: '*/*', headers: FILE_HEADERS },
      206: {
        description: 'The requested range.',
        contentType: '*/*',
        headers: {
          ...FILE_HEADERS,
          'content-range': 'The range of the bytes, and the length of the whole file.',
        },
      },
      304: NOT_MODIFIED,
    },
  },
  putFile: {
    takesBytes: true,
    headers: WRITE_CONDITIONS,
    responses: {
      200: { description: 'The file was replaced.', schema: FileEntrySchema, headers: ETAG_HEADER },
      201: {
        description: 'The file is new.',
        schema: FileEntrySchema,
        headers: { ...ETAG_HEADER, location: 'The path of the file in this API.' },
      },
    },
  },
  deleteFile: {
    headers: WRITE_CONDITIONS,
    responses: { 204: { description: 'The file was deleted.' } },
  },
});
