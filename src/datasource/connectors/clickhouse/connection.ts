import { type Static, Type } from 'typebox';
import { CaCertificate } from '../../egress/tls-mode.ts';
import { HttpUrl, nameMember, Password, User } from '../members.ts';

export const ClickhouseSchema = Type.Object(
  {
    kind: Type.Literal('clickhouse'),
    url: HttpUrl,
    database: nameMember('Database', 'Database that is used where a statement names none.', 'default'),
    user: User,
    password: Password,
    ca_certificate: Type.Optional(CaCertificate),
  },
  {
    title: 'ClickHouse',
    description: 'A ClickHouse server or ClickHouse Cloud, over its HTTP interface.',
    additionalProperties: false,
    examples: [
      {
        kind: 'clickhouse',
        url: 'https://clickhouse.example.com:8443',
        database: 'default',
        user: 'analyst',
        password: 'secret',
      },
    ],
  },
);

/** The stored connection to a ClickHouse server. */
export type ClickhouseConnection = Static<typeof ClickhouseSchema>;
