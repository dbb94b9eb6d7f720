import { Type } from 'typebox';
import { REDSHIFT_SYNTAX } from '../../query/placeholders.ts';
import { defineConnector } from '../connector.ts';
import { checkCertificate } from '../http/address.ts';
import { nameMember, serverMembers } from '../members.ts';
import { classifyPostgres, explainPostgres } from '../postgres/errors.ts';

/** The connector of Amazon Redshift, which speaks the PostgreSQL protocol. */
export const redshift = defineConnector({
  kind: 'redshift',
  title: 'Amazon Redshift',
  embedded: false,
  schema: Type.Object(
    {
      kind: Type.Literal('redshift'),
      ...serverMembers(5439, nameMember('Database', 'Database of the cluster or workgroup.', 'dev')),
      schema: nameMember(
        'Schema',
        'Schema in which tables are looked up when a statement names none. It must exist.',
        'public',
      ),
    },
    {
      title: 'Amazon Redshift',
      description: 'A Redshift cluster or serverless workgroup, with a database user and its password.',
      additionalProperties: false,
      examples: [
        {
          kind: 'redshift',
          host: 'examplecluster.abc123xyz789.us-west-2.redshift.amazonaws.com',
          port: 5439,
          database: 'dev',
          user: 'analyst',
          password: 'secret',
          schema: 'public',
        },
      ],
    },
  ),
  check: ({ ca_certificate }) => checkCertificate(ca_certificate),
  target: ({ host, port }) => ({ host, port }),
  async open({ host, port, database, user, password, schema, tls, ca_certificate: ca }, { connectTo }) {
    const { openPostgres } = await import('../postgres/link.ts');
    const route = await connectTo({ host, port });
    const address = {
      host,
      port,
      database,
      user,
      password,
      tls,
      directTls: false,
      requireChannelBinding: false,
    };
    return openPostgres({ ...address, schema, canDiscard: false, route, ...(ca !== undefined && { ca }) });
  },
  syntax: REDSHIFT_SYNTAX,
  placeholder: (position) => `$${position}`,
  classify: classifyPostgres,
  explain: explainPostgres,
});
