/** The operators' view of actors and their statecharts. */
import Type from 'typebox';
import {
  closed,
  type EnvelopeOf,
  type EventsOf,
  eventUnion,
  LastEventId,
  mapOf,
  nullable,
  oneOf,
  PageQuery,
  ResyncReasonSchema,
  SilentWorkers,
  type Streamed,
  Timestamp,
  type Wire,
} from './shape.ts';

const LinkSchema = Type.Object(
  { kind: Type.String(), id: Type.String() },
  { $id: 'ActorLink', ...closed, description: 'Another actor that is related to this one.' },
);

const identity = {
  kind: Type.String({ description: 'Such as `notebook-session` or `run`.' }),
  id: Type.String(),
  machine: Type.String({
    description: 'The id of the statechart of the actor, for `GET /api/v3/charts/{machine}`.',
  }),
  presence: oneOf(['live', 'stored', 'ended', 'failed'], {
    description:
      'Whether the actor is in memory (`live`), only in the store, or in its final state. An error of the server ' +
      'has removed a `failed` actor from memory; its next use restores it.',
  }),
  state: Type.Unknown({ description: 'The state value of its statechart.' }),
  path: Type.String({ description: 'The state as a path, such as `live.busy.running`.' }),
  since: Type.String({ format: 'date-time', description: 'When the actor last changed its state.' }),
  revision: Type.Integer({ description: 'How many transitions were stored.' }),
  links: Type.Array(LinkSchema),
};

const ActorSchema = Type.Object(
  {
    ...identity,
    lastEvents: Type.Array(
      Type.Object({ type: Type.String(), at: Timestamp }, { $id: 'ActorEvent', ...closed }),
    ),
  },
  { $id: 'Actor', ...closed },
);
export type Actor = Wire<typeof ActorSchema>;
export type ActorLink = Actor['links'][number];
export type Presence = Actor['presence'];

const filters = {
  kind: Type.Optional(
    Type.String({ minLength: 1, maxLength: 100, description: 'Only actors of this kind, such as `run`.' }),
  ),
  state: Type.Optional(
    Type.String({
      minLength: 1,
      maxLength: 200,
      description: 'Only actors in this state or in a state within it: `live` includes `live.busy.running`.',
    }),
  ),
  q: Type.Optional(
    Type.String({
      minLength: 1,
      maxLength: 200,
      description:
        'Only actors whose id, or the id of a related actor, contains this text. Case does not matter.',
    }),
  ),
  ended: Type.Boolean({
    default: false,
    description:
      'Whether to list also actors that ended or failed lately. Each worker remembers its last 1,000 such actors.',
  }),
};

export const ActorListQuery = Type.Object({ ...filters, ...PageQuery.properties }, closed);
export interface ActorFilters {
  readonly kind?: string | undefined;
  readonly state?: string | undefined;
  readonly q?: string | undefined;
  readonly ended?: boolean | undefined;
}

export const ActorCountSchema = Type.Object(
  { kind: Type.String(), state: Type.String(), count: Type.Integer() },
  { $id: 'ActorCount', ...closed },
);

export type ActorCount = Wire<typeof ActorCountSchema>;

export const ActorPageSchema = Type.Object(
  {
    items: Type.Array(ActorSchema),
    nextCursor: nullable(
      Type.String({ description: 'The `after` of the next page; null when there are no more items.' }),
    ),
    counts: Type.Array(ActorCountSchema, {
      description:
        'The number of actors of each kind in each state, whatever the `kind` and `state` of the query.',
    }),
    silentWorkers: SilentWorkers,
  },
  { $id: 'ActorPage', ...closed },
);
export type ActorPage = Wire<typeof ActorPageSchema>;

export const ActorDetailSchema = Type.Object(
  {
    ...identity,
    createdAt: Timestamp,
    context: mapOf(Type.Unknown(), {
      description: 'Facts about the actor, but never code, prompts or credentials.',
    }),
    trail: Type.Array(
      Type.Object(
        {
          at: Timestamp,
          type: Type.String({ description: 'The type of the event.' }),
          from: Type.String({ description: 'The state before the event, as a path.' }),
          to: Type.String({ description: 'The state after the event.' }),
          refused: Type.Optional(
            Type.String({ description: 'The code of the error with which the event was refused.' }),
          ),
        },
        { $id: 'ActorTrailEntry', ...closed },
      ),
      { description: 'The last 32 events since the actor came into memory, oldest first.' },
    ),
    takes: Type.Array(Type.String(), {
      description:
        'The types of the events that the actor takes in its state. For a type that `refuses` lists as well, the data of the event decides.',
    }),
    refuses: Type.Array(
      Type.Object(
        {
          type: Type.String({ description: 'The type of the event.' }),
          code: Type.String({ description: 'The code of the error.' }),
          title: Type.String(),
          advice: nullable(Type.String({ description: 'Advice for the caller.' })),
        },
        { $id: 'ActorRefusal', ...closed },
      ),
      { description: 'The events that the actor refuses in its state, and why.' },
    ),
  },
  { $id: 'ActorDetail', ...closed },
);
export type ActorDetail = Wire<typeof ActorDetailSchema>;
export type ActorTrailEntry = ActorDetail['trail'][number];

export const ChartQuery = Type.Object(
  {
    version: Type.Optional(
      Type.String({
        minLength: 1,
        maxLength: 100,
        description:
          'The `version` of the chart. A request with a version gets a response that may be cached for ever.',
      }),
    ),
  },
  closed,
);

const ChartStateSchema = mapOf(Type.Unknown(), {
  description:
    'A state: `id`, `name`, `type` (`atomic`, `compound`, `parallel` or `final`), `initial`, `tags`, and ' +
    '`states`, with the same members. `refuses` has the codes of errors by event, `runs` the work while ' +
    'the state is active, and `transitions` has `event`, `targets`, `guard` and `actions`.',
});

export const ChartSchema = Type.Object(
  {
    machine: Type.String(),
    version: Type.String({ description: 'A text that changes with the chart.' }),
    root: ChartStateSchema,
  },
  { $id: 'Chart', ...closed },
);
export type Chart = Wire<typeof ChartSchema>;

const who = { kind: Type.String(), id: Type.String() };
const EventsTaken = Type.Array(Type.String(), {
  description:
    'The types of the events that the actor took, at most the last 16; empty when the actor came into memory.',
});

const ACTOR_EVENTS = {
  'actors.snapshot': Type.Object(
    { counts: Type.Array(ActorCountSchema, { description: 'The actors in memory, by kind and state.' }) },
    closed,
  ),
  'actors.counts': Type.Object(
    {
      counts: Type.Array(ActorCountSchema, { description: 'The actors in memory, by kind and state.' }),
      moved: Type.Array(Type.String(), {
        description: 'The kinds whose actors have moved or left since the last counts.',
      }),
    },
    closed,
  ),
  'actors.replayed': Type.Object({}, closed),
  'actors.resync-required': Type.Object({ reason: ResyncReasonSchema }, closed),
  'actor.moved': Type.Object(
    {
      ...who,
      machine: identity.machine,
      from: nullable(
        Type.String({ description: 'The state before, as a path; null when the actor came into memory.' }),
      ),
      to: Type.String({
        description: 'The state after the event; unchanged when only the context of the actor has changed.',
      }),
      since: identity.since,
      revision: identity.revision,
      links: identity.links,
      events: EventsTaken,
    },
    closed,
  ),
  'actor.refused': Type.Object(
    {
      ...who,
      state: Type.String({ description: 'The state that refused, as a path.' }),
      event: Type.String({ description: 'The type of the event.' }),
      code: Type.String({ description: 'The code of the error.' }),
      count: Type.Integer({
        description: 'How often the command was refused since the last event about this refusal.',
      }),
      title: Type.String(),
      advice: nullable(Type.String({ description: 'Advice for the caller.' })),
    },
    closed,
  ),
  'actor.left': Type.Object(
    {
      ...who,
      state: Type.String({ description: 'The last state of the actor, as a path.' }),
      presence: oneOf(['ended', 'failed', 'stored', 'deleted'], {
        description:
          'Whether the actor ended, failed because of an error of the server, is only in the store, or was deleted.',
      }),
    },
    closed,
  ),
} as const;

type ActorEvents = EventsOf<typeof ACTOR_EVENTS>;

/** A published event about actors. */
export type ActorStreamEnvelope = EnvelopeOf<ActorEvents>;

/** An event about actors. */
export type ActorStreamEvent = Streamed<ActorStreamEnvelope>;

/** The JSON of each `data:` line of the stream about actors. */
export const ActorStreamEventSchema = eventUnion('ActorStreamEvent', ACTOR_EVENTS);

export const ActorEventsQuery = Type.Object(
  {
    kind: filters.kind,
    id: Type.Optional(
      Type.String({
        minLength: 1,
        maxLength: 200,
        description: 'Only the actor with this id. Requires `kind`.',
      }),
    ),
    moves: Type.Boolean({
      default: true,
      description:
        'Whether to send `actor.moved` and `actor.left`. With false, `actors.counts` is sent instead, at most once a second.',
    }),
    lastEventId: LastEventId,
  },
  closed,
);
