import { type Static, Type } from 'typebox';
import { CaCertificate } from '../../egress/tls-mode.ts';
import { HostMember, nameMember, portMember, secretMember } from '../members.ts';

export const HTTPS_PORT = 443;

export const DatabricksSchema = Type.Object(
  {
    kind: Type.Literal('databricks'),
    host: HostMember,
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
);

/** The stored connection to a Databricks SQL warehouse. */
export type DatabricksConnection = Static<typeof DatabricksSchema>;
