import { Type } from 'typebox';
import { DatasourceFailure } from '../../failure.ts';
import { POSTGRES_SYNTAX } from '../../query/placeholders.ts';
import { defineConnector } from '../connector.ts';
import { classifyPostgres, explainPostgres } from './errors.ts';
import { type PostgresAddress, parsePostgresUrl } from './url.ts';

/** The connector of PostgreSQL. */
export const postgres = defineConnector({
  kind: 'postgres',
  title: 'PostgreSQL',
  embedded: false,
  schema: Type.Object(
    {
      kind: Type.Literal('postgres'),
      connection_string: Type.String({
        title: 'Connection string',
        description:
          'A URL with user, password, one host and database. `sslmode` has its usual meaning: `verify-full` checks certificate and host name, `verify-ca` the certificate only, `require` encrypts without checking, `prefer` encrypts if the server can. Without `sslmode`, public addresses get `verify-full`, loopback and private ones `prefer`. Certificates are checked with the certificate authorities of this server’s system.',
        minLength: 1,
        maxLength: 8192,
        writeOnly: true,
        examples: [
          'postgresql://analyst:secret@db.example.com:5432/sales?sslmode=verify-full',
          'postgresql://analyst:secret@localhost/sales',
        ],
      }),
      schema: Type.String({
        title: 'Schema',
        description: 'Schema in which tables are looked up when a statement names none. It must exist.',
        minLength: 1,
        maxLength: 63,
        examples: ['public'],
      }),
    },
    {
      title: 'PostgreSQL',
      description: 'A PostgreSQL server, or one that speaks its protocol.',
      additionalProperties: false,
      examples: [
        {
          kind: 'postgres',
          connection_string: 'postgresql://analyst:secret@db.example.com:5432/sales?sslmode=verify-full',
          schema: 'public',
        },
      ],
    },
  ),
  check({ connection_string }) {
    const parsed = parsePostgresUrl(connection_string);
    return parsed.ok ? [] : [{ path: '/connection_string', message: parsed.message }];
  },
  target: ({ connection_string }) => addressIn(connection_string),
  async open({ connection_string, schema }, { connectTo }) {
    const address = addressIn(connection_string);
    const { openPostgres } = await import('./link.ts');
    return openPostgres({ ...address, schema, canDiscard: true, route: await connectTo(address) });
  },
  syntax: POSTGRES_SYNTAX,
  placeholder: (position) => `$${position}`,
  classify: classifyPostgres,
  explain: explainPostgres,
  secrets: ({ connection_string }) => [addressIn(connection_string).password],
});

function addressIn(connectionString: string): PostgresAddress {
  const parsed = parsePostgresUrl(connectionString);
  if (!parsed.ok) throw new DatasourceFailure('failed');
  return parsed.address;
}
