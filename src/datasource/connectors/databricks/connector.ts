import { DATABRICKS_SYNTAX } from '../../query/placeholders.ts';
import { defineConnector } from '../connector.ts';
import { checkCertificate, originOf, tlsOf } from '../http/address.ts';
import { agentFor, explainRemote } from '../http/client.ts';
import { DatabricksSchema, HTTPS_PORT } from './connection.ts';
import { classifyDatabricks, openDatabricks } from './link.ts';

/** The connector of Databricks SQL warehouses. */
export const databricks = defineConnector({
  kind: 'databricks',
  title: 'Databricks',
  embedded: false,
  readsByWords: true,
  schema: DatabricksSchema,
  check: ({ ca_certificate }) => checkCertificate(ca_certificate),
  target: ({ host, port = HTTPS_PORT }) => ({ host, port }),
  async open(connection, { connectTo }) {
    const { host, port = HTTPS_PORT, ca_certificate } = connection;
    const route = await connectTo({ host, port });
    const tls = tlsOf('https://', ca_certificate);
    return openDatabricks({
      ...connection,
      agent: agentFor(route, tls),
      origin: originOf(route, tls),
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
