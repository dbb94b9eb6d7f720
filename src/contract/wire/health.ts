/** The operators' view of the server's health and keyring. */
import Type from 'typebox';
import { closed, listSchema, oneOf, type Wire } from './shape.ts';

export const HealthSchema = Type.Object(
  {
    status: oneOf(['ok', 'draining'], {
      description: '`draining`: the server is stopping, and new requests should go to another server.',
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
          'Problems of a server that is ready, which an operator should look at, such as a disk that is nearly full.',
      }),
    ),
  },
  { $id: 'Readiness', ...closed },
);
export type Readiness = Wire<typeof ReadinessSchema>;

const KeySchema = Type.Object(
  {
    id: Type.String(),
    active: Type.Boolean({ description: 'Whether the key encrypts new connections.' }),
    sealed: Type.Integer({ description: 'How many connections the key encrypts.' }),
  },
  { $id: 'Key', ...closed },
);
export type Key = Wire<typeof KeySchema>;

export const KeyListSchema = listSchema('KeyList', KeySchema);
export type KeyList = Wire<typeof KeyListSchema>;
