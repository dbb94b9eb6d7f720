import { type Static, Type } from 'typebox';
import { CaCertificate } from '../../egress/tls-mode.ts';
import { HttpUrl, nameMember, secretMember, User } from '../members.ts';

export const TrinoSchema = Type.Object(
  {
    kind: Type.Literal('trino'),
    url: HttpUrl,
    catalog: nameMember('Catalog', 'Catalog that is used where a statement names none.', 'hive'),
    schema: nameMember('Schema', 'Schema that is used where a statement names none.', 'default'),
    user: User,
    password: Type.Optional(
      secretMember('Password', 'Password of the user. It is sent over `https` only.', 'secret'),
    ),
    ca_certificate: Type.Optional(CaCertificate),
  },
  {
    title: 'Trino',
    description: 'A Trino or Starburst coordinator, over its HTTP protocol.',
    additionalProperties: false,
    examples: [
      {
        kind: 'trino',
        url: 'https://trino.example.com:8443',
        catalog: 'hive',
        schema: 'default',
        user: 'analyst',
      },
    ],
  },
);

/** The stored connection to a Trino coordinator. */
export type TrinoConnection = Static<typeof TrinoSchema>;
