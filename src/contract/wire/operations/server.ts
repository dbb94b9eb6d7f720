import Type from 'typebox';
import {
  ActorDetailSchema,
  ActorEventsQuery,
  ActorListQuery,
  ActorPageSchema,
  ActorStreamEventSchema,
  ChartQuery,
  ChartSchema,
} from '../actor.ts';
import { AuditEntrySchema } from '../audit.ts';
import { HealthSchema, KeyListSchema, ReadinessSchema } from '../health.ts';
import { AuditListQuery } from '../lists.ts';
import { NodeChangeSchema, NodeInvitationSchema, NodeListSchema, NodeSchema } from '../nodes.ts';
import {
  KernelListQuery,
  KernelListSchema,
  ServerLogSchema,
  ServerStateSchema,
  ServerStreamEventSchema,
} from '../server.ts';
import { EmptyBodySchema, pageSchema } from '../shape.ts';
import { UsageQuery, WorkspaceUsageSchema } from '../usage.ts';
import { declareOperations } from './operation.ts';
import { STREAM_HEADERS } from './parts.ts';

/** The server as a whole: health, load, actors, audit, usage and keyring. */
export const SERVER_OPERATIONS = declareOperations({
  inspectActors: {
    query: ActorListQuery,
    responses: { 200: { description: 'A page of actors.', schema: ActorPageSchema } },
  },
  inspectActor: {
    responses: { 200: { description: 'The actor.', schema: ActorDetailSchema } },
  },
  followActors: {
    headers: STREAM_HEADERS,
    query: ActorEventsQuery,
    responses: {
      200: {
        description: 'The event stream.',
        schema: ActorStreamEventSchema,
        contentType: 'text/event-stream',
      },
    },
  },
  listAudit: {
    query: AuditListQuery,
    responses: {
      200: { description: 'A page of entries.', schema: pageSchema('AuditPage', AuditEntrySchema) },
    },
  },
  getChart: {
    query: ChartQuery,
    responses: {
      200: {
        description: 'The statechart.',
        schema: ChartSchema,
        headers: { 'cache-control': 'How long the chart may be kept.' },
      },
    },
  },
  listKernels: {
    query: KernelListQuery,
    responses: { 200: { description: 'The kernels that run.', schema: KernelListSchema } },
  },
  listKeys: {
    responses: { 200: { description: 'The keys.', schema: KeyListSchema } },
  },
  addKey: {
    body: EmptyBodySchema,
    optionalBody: true,
    responses: { 200: { description: 'The keys after the change.', schema: KeyListSchema } },
  },
  deleteKey: {
    responses: { 204: { description: 'The key was deleted.' } },
  },
  rotateKeys: {
    body: EmptyBodySchema,
    optionalBody: true,
    responses: { 200: { description: 'The keys after the change.', schema: KeyListSchema } },
  },
  listNodes: {
    responses: { 200: { description: 'The nodes.', schema: NodeListSchema } },
  },
  inviteNode: {
    body: EmptyBodySchema,
    optionalBody: true,
    responses: { 200: { description: 'The invitation.', schema: NodeInvitationSchema } },
  },
  changeNode: {
    body: NodeChangeSchema,
    responses: { 200: { description: 'The node.', schema: NodeSchema } },
  },
  removeNode: {
    responses: { 204: { description: 'The node was removed.' } },
  },
  confirmClock: {
    body: EmptyBodySchema,
    optionalBody: true,
    responses: { 204: { description: 'The clock is trusted.' } },
  },
  getOpenApi: {
    responses: {
      200: {
        description: 'The OpenAPI document.',
        schema: Type.Unsafe<object>({
          type: 'object',
          properties: { openapi: { type: 'string' }, paths: { type: 'object' } },
          additionalProperties: true,
          required: ['openapi', 'paths'],
          examples: [{ openapi: '3.1.0', info: { title: 'Troupe', version: '1.0.0' }, paths: {} }],
        }),
      },
    },
  },
  getServer: {
    responses: { 200: { description: 'The state.', schema: ServerStateSchema } },
  },
  followServer: {
    responses: {
      200: {
        description: 'The event stream.',
        schema: ServerStreamEventSchema,
        contentType: 'text/event-stream',
      },
    },
  },
  getServerLog: {
    responses: { 200: { description: 'The lines.', schema: ServerLogSchema } },
  },
  getUsage: {
    query: UsageQuery,
    responses: {
      200: {
        description: 'The disk space and the tokens of models that the workspace has used.',
        schema: WorkspaceUsageSchema,
      },
    },
  },
  getHealth: {
    responses: {
      200: { description: 'The process is alive.', schema: HealthSchema },
      503: {
        description: 'The process drains before its end.',
        schema: HealthSchema,
        headers: { 'retry-after': 'How many seconds to wait.' },
      },
    },
  },
  getMetrics: {
    responses: { 200: { description: 'The metrics.', contentType: 'application/openmetrics-text' } },
  },
  getReadiness: {
    responses: {
      200: { description: 'The server is ready.', schema: ReadinessSchema },
      503: {
        description: 'The server is not ready.',
        schema: ReadinessSchema,
        headers: { 'retry-after': 'How many seconds to wait.' },
      },
    },
  },
});
