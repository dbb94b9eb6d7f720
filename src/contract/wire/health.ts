/** The operators' view of the server's health and keyring. */
import Type from 'typebox';
import { closed, listSchema, oneOf, type Wire } from './shape.ts';

export const HealthSchema = Type.Object(
  {
    status: oneOf(['ok', 'draining'], {
      description: '`draining`: the server stops, and new requests belong to another one.',
    }),
  },
  { $id: 'Health', ...closed },
);
export type Health = Wire<typeof HealthSchema>;

export const ReadinessSchema = Type.Object(
  {
    ready: Type.Boolean(),
    reason: Type.Optional(Type.String({ description: 'Why the server is not ready.' })),
    warnings: Type.Optional(
      Type.Array(Type.String(), {
        description:
          'Problems that an operator should look at although the server is ready, such as a disk that is nearly full.',
      }),
    ),
  },
  { $id: 'Readiness', ...closed },
);
export type Readiness = Wire<typeof ReadinessSchema>;

const KeySchema = Type.Object(
  {
    id: Type.String(),
    active: Type.Boolean({ description: 'Whether it encrypts new connections.' }),
    sealed: Type.Integer({ description: 'How many connections it encrypts.' }),
  },
  { $id: 'Key', ...closed },
);
export type Key = Wire<typeof KeySchema>;

export const KeyListSchema = listSchema('KeyList', KeySchema);
export type KeyList = Wire<typeof KeyListSchema>;
