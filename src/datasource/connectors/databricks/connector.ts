import { Type } from 'typebox';
import { CaCertificate } from '../../egress/tls-mode.ts';
import { DATABRICKS_SYNTAX } from '../../query/placeholders.ts';
import { defineConnector } from '../connector.ts';
import { checkCertificate, originOf, tlsOf } from '../http/address.ts';
import { agentFor, explainRemote } from '../http/client.ts';
import { Host, nameMember, portMember, secretMember } from '../members.ts';
import { classifyDatabricks, openDatabricks } from './session.ts';

const HTTPS_PORT = 443;

/** The connector of Databricks SQL warehouses. */
export const databricks = defineConnector({
  kind: 'databricks',
  title: 'Databricks',
  embedded: false,
  readsByWords: true,
  schema: Type.Object(
    {
      kind: Type.Literal('databricks'),
      host: Host,
      port: Type.Optional(portMember(HTTPS_PORT)),
      http_path: Type.String({
        title: 'HTTP path',
        description: 'HTTP path of a SQL warehouse, as its connection details show it.',
        pattern: '^/?sql/1\\.0/(warehouses|endpoints)/[A-Za-z0-9]+$',
        maxLength: 200,
        examples: ['/sql/1.0/warehouses/abcdef1234567890'],
      }),
      token: secretMember('Token', 'Access token of a user or a service principal.', 'secret'),
      catalog: nameMember('Catalog', 'Catalog that is used where a statement names none.', 'main'),
      schema: nameMember('Schema', 'Schema that is used where a statement names none.', 'default'),
      ca_certificate: Type.Optional(CaCertificate),
    },
    {
      title: 'Databricks',
      description: 'A SQL warehouse of a Databricks workspace, over its Statement Execution API.',
      additionalProperties: false,
      examples: [
        {
          kind: 'databricks',
          host: 'dbc-a1b2c3d4-e5f6.cloud.databricks.com',
          http_path: '/sql/1.0/warehouses/abcdef1234567890',
          token: 'secret',
          catalog: 'main',
          schema: 'default',
        },
      ],
    },
  ),
  check: ({ ca_certificate }) => checkCertificate(ca_certificate),
  target: ({ host, port = HTTPS_PORT }) => ({ host, port }),
  async open({ host, port = HTTPS_PORT, http_path, ca_certificate, ...rest }, { connectTo }) {
    const route = await connectTo({ host, port });
    const tls = tlsOf('https://', ca_certificate);
    return openDatabricks({
      ...rest,
      agent: agentFor(route, tls),
      origin: originOf(route, tls),
      warehouseId: http_path.split('/').at(-1) ?? '',
      // Results are files in the cloud's storage. The gateway checks the host of that storage like
      // any other.
      agentTo: async (target, signal) => agentFor(await connectTo(target, signal), tls),
    });
  },
  syntax: DATABRICKS_SYNTAX,
  placeholder: (position) => `:p${position}`,
  classify: classifyDatabricks,
  explain: explainRemote,
});
