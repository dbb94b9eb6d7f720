import { type Static, Type } from 'typebox';
import { CaCertificate } from '../../egress/tls-mode.ts';
import { HttpsUrl, nameMember, PrivateKey, secretMember, User } from '../members.ts';

export const SnowflakeSchema = Type.Object(
  {
    kind: Type.Literal('snowflake'),
    account: Type.String({
      title: 'Account',
      description:
        'Account identifier: organization and account name, or the account locator with its region.',
      pattern: '^[A-Za-z0-9_-]+(\\.[A-Za-z0-9_-]+)*$',
      maxLength: 200,
      examples: ['myorg-myaccount', 'xy12345.eu-central-1'],
    }),
    user: User,
    private_key: Type.Optional(PrivateKey),
    token: Type.Optional(secretMember('Token', 'Programmatic access token of the user.', 'secret')),
    warehouse: nameMember('Warehouse', 'Warehouse that statements run in.', 'COMPUTE_WH'),
    database: nameMember('Database', 'Database that is used where a statement names none.', 'SALES'),
    schema: nameMember('Schema', 'Schema that is used where a statement names none.', 'PUBLIC'),
    role: Type.Optional(nameMember('Role', 'Role of the session; the user’s own when unset.', 'ANALYST')),
    url: Type.Optional(HttpsUrl),
    ca_certificate: Type.Optional(CaCertificate),
  },
  {
    title: 'Snowflake',
    description:
      'A Snowflake account, over its SQL API, with a `token` or the `private_key` of a key pair: Snowflake no longer accepts passwords from programs.',
    additionalProperties: false,
    anyOf: [{ required: ['token'] }, { required: ['private_key'] }],
    examples: [
      {
        kind: 'snowflake',
        account: 'myorg-myaccount',
        user: 'ANALYST',
        token: 'secret',
        warehouse: 'COMPUTE_WH',
        database: 'SALES',
        schema: 'PUBLIC',
      },
    ],
  },
);

/** The stored connection to a Snowflake account. */
export type SnowflakeConnection = Static<typeof SnowflakeSchema>;
