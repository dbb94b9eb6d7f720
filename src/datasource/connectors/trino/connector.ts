import { TRINO_SYNTAX } from '../../query/placeholders.ts';
import { defineConnector } from '../connector.ts';
import { checkCertificate, checkUrl, originOf, targetOf, tlsOf } from '../http/address.ts';
import { agentFor, explainRemote } from '../http/client.ts';
import { TrinoSchema } from './connection.ts';
import { classifyTrino, openTrino } from './link.ts';

/** The connector of Trino. */
export const trino = defineConnector({
  kind: 'trino',
  title: 'Trino',
  embedded: false,
  readsByWords: true,
  schema: TrinoSchema,
  check: ({ url, password, ca_certificate }) => [
    ...checkUrl(url),
    ...(password !== undefined && !url.startsWith('https:')
      ? [{ path: '/password', message: 'is sent over https only, and the url is not' }]
      : []),
    ...checkCertificate(ca_certificate),
  ],
  target: ({ url }) => targetOf(url),
  async open(connection, { connectTo }) {
    const route = await connectTo(targetOf(connection.url));
    const tls = tlsOf(connection.url, connection.ca_certificate);
    return openTrino({ ...connection, agent: agentFor(route, tls), origin: originOf(route, tls) });
  },
  syntax: TRINO_SYNTAX,
  placeholder: () => '?',
  classify: classifyTrino,
  explain: explainRemote,
});
