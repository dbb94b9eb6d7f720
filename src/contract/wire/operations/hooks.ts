import { CreatedHookSchema, DeliverySchema, HookChangeSchema, HookSchema, NewHookSchema } from '../hook.ts';
import { OrderedPageQuery } from '../lists.ts';
import { EmptyBodySchema, pageSchema } from '../shape.ts';
import { declareOperations } from './operation.ts';

/** Hooks and their deliveries. */
export const HOOK_OPERATIONS = declareOperations({
  listHooks: {
    query: OrderedPageQuery,
    responses: { 200: { description: 'A page of hooks.', schema: pageSchema('HookPage', HookSchema) } },
  },
  createHook: {
    body: NewHookSchema,
    responses: {
      201: {
        description: 'The hook was created. This answer alone has its secret.',
        schema: CreatedHookSchema,
        headers: { location: 'The path of the hook.' },
      },
    },
  },
  getHook: { responses: { 200: { description: 'The hook.', schema: HookSchema } } },
  updateHook: {
    body: HookChangeSchema,
    responses: { 200: { description: 'The changed hook.', schema: HookSchema } },
  },
  deleteHook: { responses: { 204: { description: 'The hook was deleted.' } } },
  rotateHookSecret: {
    body: EmptyBodySchema,
    optionalBody: true,
    responses: {
      200: {
        description: 'The hook with its new secret, which this answer alone has.',
        schema: CreatedHookSchema,
      },
    },
  },
  testHook: {
    body: EmptyBodySchema,
    optionalBody: true,
    responses: { 202: { description: 'The delivery, which waits.', schema: DeliverySchema } },
  },
  listDeliveries: {
    query: OrderedPageQuery,
    responses: {
      200: { description: 'A page of deliveries.', schema: pageSchema('HookDeliveryPage', DeliverySchema) },
    },
  },
  replayDelivery: {
    body: EmptyBodySchema,
    optionalBody: true,
    responses: { 202: { description: 'The delivery, which waits again.', schema: DeliverySchema } },
  },
});
