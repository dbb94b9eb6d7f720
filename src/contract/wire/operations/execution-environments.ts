import { EnvironmentListQuery } from '../lists.ts';
import { EnvironmentSchema } from '../session.ts';
import { EmptyBodySchema, pageSchema } from '../shape.ts';
import { declareOperations } from './operation.ts';

/** Execution environments. */
export const EXECUTION_ENVIRONMENT_OPERATIONS = declareOperations({
  listExecutionEnvironments: {
    query: EnvironmentListQuery,
    responses: {
      200: {
        description: 'A page of environments.',
        schema: pageSchema('EnvironmentPage', EnvironmentSchema),
      },
    },
  },
  createExecutionEnvironment: {
    body: EmptyBodySchema,
    optionalBody: true,
    responses: {
      201: {
        description: 'The environment was created.',
        schema: EnvironmentSchema,
        headers: { location: 'The path of the environment.' },
      },
    },
  },
  getExecutionEnvironment: {
    responses: { 200: { description: 'The environment.', schema: EnvironmentSchema } },
  },
  closeExecutionEnvironment: {
    responses: { 200: { description: 'The closed environment.', schema: EnvironmentSchema } },
  },
});
