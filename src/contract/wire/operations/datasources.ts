import Type from 'typebox';
import {
  ConnectionTestRequestSchema,
  ConnectionTestSchema,
  DatasourceGrantListSchema,
  DatasourceGrantSchema,
  DatasourceReplacementSchema,
  DatasourceSchema,
  DeletedDatasourceSchema,
  NewDatasourceGrantSchema,
  NewDatasourceSchema,
} from '../datasource.ts';
import { EmptyBodySchema, pageSchema, WholeListQuery } from '../shape.ts';
import { declareOperations } from './operation.ts';
import { ETAG_HEADER, NOT_MODIFIED, READ_CONDITION, WRITE_CONDITIONS } from './parts.ts';

const TEST_FAILED = {
  description: 'The connection test failed, so nothing was saved.',
  schema: ConnectionTestSchema,
};

/** Datasources, with whom they are shared, and connections that are not saved. */
export const DATASOURCE_OPERATIONS = declareOperations({
  getConnectionSchema: {
    responses: {
      200: {
        description: 'A JSON Schema 2020-12 document that covers every kind of connection.',
        schema: Type.Unsafe<object>({
          type: 'object',
          properties: { $schema: { type: 'string' }, oneOf: { type: 'array', items: { type: 'object' } } },
          additionalProperties: true,
          required: ['$schema', 'oneOf'],
          examples: [{ $schema: 'https://json-schema.org/draft/2020-12/schema', oneOf: [] }],
        }),
      },
    },
  },
  testConnection: {
    body: ConnectionTestRequestSchema,
    responses: {
      200: { description: 'The connection works.', schema: ConnectionTestSchema },
      400: { description: 'The connection does not work.', schema: ConnectionTestSchema },
    },
  },
  listDatasources: {
    query: WholeListQuery,
    responses: {
      200: {
        description: 'The datasources.',
        schema: pageSchema('DatasourcePage', DatasourceSchema),
      },
    },
  },
  createDatasource: {
    body: NewDatasourceSchema,
    responses: {
      201: {
        description: 'The datasource was created.',
        schema: DatasourceSchema,
        headers: { location: 'The path of the datasource.', ...ETAG_HEADER },
      },
      400: TEST_FAILED,
    },
  },
  getDatasource: {
    headers: READ_CONDITION,
    responses: {
      200: { description: 'The metadata.', schema: DatasourceSchema, headers: ETAG_HEADER },
      304: NOT_MODIFIED,
    },
  },
  replaceDatasource: {
    headers: WRITE_CONDITIONS,
    body: DatasourceReplacementSchema,
    responses: {
      200: { description: 'The connection was replaced.', schema: DatasourceSchema, headers: ETAG_HEADER },
      400: TEST_FAILED,
    },
  },
  deleteDatasource: {
    headers: WRITE_CONDITIONS,
    responses: {
      200: {
        description: 'The datasource was deleted.',
        schema: DeletedDatasourceSchema,
      },
    },
  },
  listDatasourceGrants: {
    responses: {
      200: {
        description: 'All grants.',
        schema: DatasourceGrantListSchema,
      },
    },
  },
  grantDatasource: {
    body: NewDatasourceGrantSchema,
    responses: {
      201: {
        description: 'The datasource is shared.',
        schema: DatasourceGrantSchema,
        headers: { location: 'The path of the grant.' },
      },
    },
  },
  revokeDatasourceGrant: {
    responses: { 204: { description: 'The datasource is no longer shared.' } },
  },
  testDatasource: {
    body: EmptyBodySchema,
    optionalBody: true,
    responses: {
      200: { description: 'The connection works.', schema: ConnectionTestSchema },
      400: { description: 'The connection does not work.', schema: ConnectionTestSchema },
    },
  },
});
