/** Hooks: requests that the server sends to other servers when something has happened in a workspace. */
import Type from 'typebox';
import { HTTP_URL } from './patterns.ts';
import { closed, MetadataSchema, nullable, oneOf, optionalOrNull, Timestamp, type Wire } from './shape.ts';

/** The events that a hook may ask for. */
export const HOOK_EVENTS = [
  'run.completed',
  'run.failed',
  'run.cancelled',
  'job.failed',
  'job.skipped',
  'job.paused',
  'session.failed',
] as const;

const EventSchema = oneOf(HOOK_EVENTS);
export type HookEventType = Wire<typeof EventSchema>;

const FilterSchema = Type.Object(
  {
    notebookId: Type.Optional(
      Type.String({
        minLength: 1,
        maxLength: 200,
        description: 'Only events of this notebook, also of the jobs that run it.',
      }),
    ),
    jobId: Type.Optional(
      Type.String({ minLength: 1, maxLength: 200, description: 'Only events of this job and of its runs.' }),
    ),
    metadata: Type.Optional(MetadataSchema),
  },
  {
    $id: 'HookFilter',
    ...closed,
    description:
      'Which events are sent. An event must match every member; `metadata` are pairs that a run must have.',
  },
);
export type HookFilter = Wire<typeof FilterSchema>;

const members = {
  url: Type.String({
    minLength: 1,
    maxLength: 2000,
    pattern: HTTP_URL,
    description:
      'The URL to which the events are posted. Everybody who may read the hook sees it, so it should contain no secret.',
  }),
  events: Type.Array(EventSchema, { minItems: 1, maxItems: HOOK_EVENTS.length, uniqueItems: true }),
  name: nullable(Type.String({ minLength: 1, maxLength: 200, description: 'A name for people.' })),
};

const paused = Type.Boolean({
  description: 'Whether the hook sends nothing. Events during a pause are not sent later.',
});

export const NewHookSchema = Type.Object(
  {
    url: members.url,
    events: members.events,
    filter: Type.Optional(FilterSchema),
    name: optionalOrNull(members.name.anyOf[0]),
    paused: Type.Optional(paused),
  },
  {
    $id: 'NewHook',
    ...closed,
    examples: [
      {
        name: 'Failures to the on-call channel',
        url: 'https://receiver.example.com/troupe',
        events: ['run.failed', 'job.paused'],
      },
    ],
  },
);
export type NewHook = Wire<typeof NewHookSchema>;

export const HookChangeSchema = Type.Object(
  {
    expectedUpdatedAt: Type.String({
      format: 'date-time',
      maxLength: 64,
      description:
        'The `updatedAt` of your last read of the hook. When the hook has changed since: 409 `stale_update`.',
    }),
    url: Type.Optional(members.url),
    events: Type.Optional(members.events),
    filter: Type.Optional(FilterSchema),
    name: Type.Optional(members.name),
    paused: Type.Optional(paused),
  },
  {
    $id: 'HookChange',
    ...closed,
    examples: [{ expectedUpdatedAt: '2027-01-01T06:00:00.000Z', paused: false }],
  },
);
export type HookChange = Wire<typeof HookChangeSchema>;

const HookReasonSchema = Type.Object(
  { code: Type.String(), message: Type.String() },
  { $id: 'HookReason', ...closed },
);

const EXAMPLE = {
  id: 'hook_01k6gq0000aaaaaaaaaaaaaaaa',
  url: 'https://receiver.example.com/troupe',
  events: ['run.failed'],
  filter: {},
  name: 'Failures to the on-call channel',
  paused: false,
  status: 'idle',
  reason: null,
  pending: 0,
  olderSecretUntil: null,
  ownerId: 'ada',
  createdAt: '2027-01-01T06:00:00.000Z',
  updatedAt: '2027-01-01T06:00:00.000Z',
};

const hook = {
  id: Type.String(),
  url: members.url,
  events: members.events,
  filter: FilterSchema,
  name: members.name,
  paused: Type.Boolean(),
  status: oneOf(['idle', 'due', 'sending', 'backing-off', 'paused'], {
    description:
      '`idle`: nothing waits. `due`: a delivery waits. `sending`. `backing-off`: a delivery has failed and is sent again after a pause. `paused`.',
  }),
  reason: nullable(HookReasonSchema),
  pending: Type.Integer({ description: 'How many deliveries wait.' }),
  olderSecretUntil: nullable(
    Type.String({
      format: 'date-time',
      description: 'Until when the secret before the last rotation signs, too. Null when there is none.',
    }),
  ),
  ownerId: Type.String({ description: 'The user with whose rights the hook learns of events.' }),
  createdAt: Timestamp,
  updatedAt: Timestamp,
};

const Secret = Type.String({
  description:
    'The secret that signs the requests of the hook, in the form of Standard Webhooks. It is shown only in this answer.',
});

export const HookSchema = Type.Object(hook, { $id: 'Hook', ...closed, examples: [EXAMPLE] });
export type Hook = Wire<typeof HookSchema>;

export const CreatedHookSchema = Type.Object(
  { ...hook, secret: Secret },
  {
    $id: 'CreatedHook',
    ...closed,
    examples: [{ ...EXAMPLE, secret: 'whsec_MDEyMzQ1Njc4OWFiY2RlZjAxMjM0NTY3ODlhYmNkZWY=' }],
  },
);
export type CreatedHook = Wire<typeof CreatedHookSchema>;

/** The longest text of a receiver's answer that a delivery keeps, in bytes. */
export const MAX_RESPONSE_BYTES = 1024;

export const DeliverySchema = Type.Object(
  {
    id: Type.String({ description: 'The `webhook-id` of every attempt of this delivery.' }),
    hookId: Type.String(),
    event: Type.String({ description: 'The type of the event; `hook.test` for a test.' }),
    status: oneOf(['pending', 'delivered', 'dead']),
    attempts: Type.Integer({ description: 'How many requests have begun.' }),
    responseStatus: nullable(Type.Integer({ description: 'The status of the last answer.' })),
    response: nullable(
      Type.String({ description: `The beginning of the last answer, up to ${MAX_RESPONSE_BYTES} bytes.` }),
    ),
    reason: nullable(HookReasonSchema),
    payload: Type.String({
      description: 'The body of the request: JSON with `type`, `timestamp` and `data`.',
    }),
    queuedAt: Timestamp,
    lastAttemptAt: nullable(Timestamp),
    nextAttemptAt: nullable(Timestamp),
    finishedAt: nullable(Timestamp),
    createdAt: Timestamp,
  },
  { $id: 'HookDelivery', ...closed },
);
export type Delivery = Wire<typeof DeliverySchema>;

const hookIn = {
  id: Type.String(),
  jobId: Type.String(),
  name: members.name,
  url: Type.String({
    description:
      'Where other programs post to fire the job. A path below the address of the server, or a whole URL if the setting ' +
      '`TROUPE_PUBLIC_URL` is set.',
  }),
  createdBy: Type.String({ description: 'The id of the user who made this resource.' }),
  createdAt: Timestamp,
};

export const NewHookInSchema = Type.Object(
  { name: optionalOrNull(members.name.anyOf[0]) },
  { $id: 'NewHookIn', ...closed, examples: [{ name: 'CI' }] },
);

export const HookInSchema = Type.Object(hookIn, { $id: 'HookIn', ...closed });
export type HookIn = Wire<typeof HookInSchema>;

export const CreatedHookInSchema = Type.Object(
  {
    ...hookIn,
    secret: Type.String({
      description:
        'The secret of the hook, for a bearer token or for signatures. It is shown only in this answer.',
    }),
  },
  { $id: 'CreatedHookIn', ...closed },
);
export type CreatedHookIn = Wire<typeof CreatedHookInSchema>;
