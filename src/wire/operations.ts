/** What operators see of the server: health, actors and the keyring. */
import Type from 'typebox';
import { closed, listSchema, Timestamp, type Wire } from './shape.ts';

export const HealthSchema = Type.Object({ status: Type.Literal('ok') }, { $id: 'Health', ...closed });
export type Health = Wire<typeof HealthSchema>;

export const ReadinessSchema = Type.Object(
  {
    ready: Type.Boolean(),
    reason: Type.Optional(Type.String({ description: 'Why the server is not ready.' })),
  },
  { $id: 'Readiness', ...closed },
);
export type Readiness = Wire<typeof ReadinessSchema>;

const LiveActorSchema = Type.Object(
  {
    kind: Type.String(),
    id: Type.String(),
    machine: Type.String(),
    state: Type.Unknown({ description: 'The state value of its statechart.' }),
    since: Type.String({ format: 'date-time', description: 'When it last changed its state.' }),
    revision: Type.Integer({ description: 'How many transitions were stored.' }),
    lastEvents: Type.Array(Type.Object({ type: Type.String(), at: Timestamp }, closed)),
  },
  { $id: 'Actor', ...closed },
);
export type LiveActor = Wire<typeof LiveActorSchema>;

export const ActorListSchema = listSchema('ActorList', LiveActorSchema);
export type ActorList = Wire<typeof ActorListSchema>;

const KeySchema = Type.Object(
  {
    id: Type.String(),
    active: Type.Boolean({ description: 'Whether it encrypts new connections.' }),
    sealed: Type.Integer({ description: 'How many connections it encrypts.' }),
  },
  closed,
);
export type Key = Wire<typeof KeySchema>;

export const KeyListSchema = listSchema('KeyList', KeySchema);
export type KeyList = Wire<typeof KeyListSchema>;
