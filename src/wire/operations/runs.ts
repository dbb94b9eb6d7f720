import { RunListQuery } from '../lists.ts';
import {
  CancellationSchema,
  RunCancellationResultSchema,
  RunCancellationsSchema,
  RunSchema,
  WaitQuery,
} from '../run.ts';
import { EmptyBodySchema, listSchema, pageSchema } from '../shape.ts';
import { declareOperations } from './operation.ts';
import { CONTENT_HEADERS, ETAG_HEADER, NOT_MODIFIED, READ_CONDITION } from './parts.ts';

const ASSET_HEADERS = {
  etag: 'The SHA-256 of the asset.',
  'content-disposition': '`inline` for plain images and plain text, otherwise `attachment`.',
};

/** Runs and their assets. */
export const RUN_OPERATIONS = declareOperations({
  listRuns: {
    query: RunListQuery,
    responses: { 200: { description: 'A page of runs.', schema: pageSchema('RunPage', RunSchema) } },
  },
  getRun: {
    headers: READ_CONDITION,
    query: WaitQuery,
    responses: {
      200: { description: 'The run.', schema: RunSchema, headers: ETAG_HEADER },
      304: NOT_MODIFIED,
    },
  },
  deleteRun: {
    responses: { 204: { description: 'The run was deleted.' } },
  },
  getRunAsset: {
    headers: CONTENT_HEADERS,
    responses: {
      200: { description: 'The whole asset.', contentType: '*/*', headers: ASSET_HEADERS },
      206: {
        description: 'The requested range.',
        contentType: '*/*',
        headers: {
          ...ASSET_HEADERS,
          'content-range': 'The range of the bytes, and the length of the whole asset.',
        },
      },
      304: { description: 'The caller already has the asset.', headers: ASSET_HEADERS },
    },
  },
  deleteRunAsset: {
    responses: { 204: { description: 'The asset was deleted.' } },
  },
  cancelRun: {
    body: EmptyBodySchema,
    optionalBody: true,
    responses: {
      202: {
        description: 'The cancellation has begun.',
        schema: CancellationSchema,
        headers: { location: 'The path of the run.' },
      },
    },
  },
  cancelRuns: {
    body: RunCancellationsSchema,
    responses: {
      200: {
        description: 'The result for each run.',
        schema: listSchema('RunCancellationResults', RunCancellationResultSchema),
      },
    },
  },
});
