import {
  CreatedHookInSchema,
  CreatedHookSchema,
  DeliverySchema,
  HookChangeSchema,
  HookInSchema,
  HookSchema,
  NewHookInSchema,
  NewHookSchema,
} from '../hook.ts';
import { OccurrenceSchema } from '../job.ts';
import { OrderedPageQuery } from '../lists.ts';
import { EmptyBodySchema, listSchema, pageSchema } from '../shape.ts';
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
  createHookIn: {
    body: NewHookInSchema,
    responses: {
      201: {
        description: 'The hook was created. This answer alone has its secret.',
        schema: CreatedHookInSchema,
      },
    },
  },
  listHooksIn: {
    responses: {
      200: { description: 'All hooks of the job.', schema: listSchema('HookInList', HookInSchema) },
    },
  },
  deleteHookIn: { responses: { 204: { description: 'The hook was deleted.' } } },
  fireByHook: {
    takesBytes: true,
    headers: {
      authorization: '`Bearer` and the secret of the hook, unless the request is signed.',
      'webhook-id': 'The id of the request. A request with the id of an earlier one is the same firing.',
      'webhook-timestamp': 'The time of a signed request, in seconds since 1970.',
      'webhook-signature': 'Signatures after the Standard Webhooks text, separated by spaces.',
      'idempotency-key': 'The id of the request, where it has no `webhook-id`.',
    },
    responses: {
      202: {
        description: 'The occurrence, as it was when the request came first.',
        schema: OccurrenceSchema,
      },
    },
  },
  replayDelivery: {
    body: EmptyBodySchema,
    optionalBody: true,
    responses: { 202: { description: 'The delivery, which waits again.', schema: DeliverySchema } },
  },
});
