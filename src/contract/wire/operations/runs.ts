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
import { ASSET_RESPONSES, CONTENT_HEADERS, ETAG_HEADER, NOT_MODIFIED, READ_CONDITION } from './parts.ts';

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
    responses: ASSET_RESPONSES,
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
