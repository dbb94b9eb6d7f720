import {
  ModelKeyRequestSchema,
  ModelKeySchema,
  ModelListSchema,
  ModelTestRequestSchema,
  ModelTestSchema,
} from '../models.ts';
import { declareOperations } from './operation.ts';

/** The models that agents can use. */
export const MODEL_OPERATIONS = declareOperations({
  listModels: {
    responses: { 200: { description: 'All providers.', schema: ModelListSchema } },
  },
  setModelKey: {
    body: ModelKeyRequestSchema,
    responses: { 200: { description: 'The key was stored.', schema: ModelKeySchema } },
  },
  deleteModelKey: {
    responses: { 204: { description: 'The key was deleted.' } },
  },
  testModel: {
    body: ModelTestRequestSchema,
    responses: { 200: { description: 'Whether the model answered.', schema: ModelTestSchema } },
  },
});
