import { BIGQUERY_SYNTAX } from '../../query/placeholders.ts';
import { defineConnector } from '../connector.ts';
import { checkCertificate, checkUrl, originOf, targetOf, tlsOf } from '../http/address.ts';
import { agentFor, explainRemote } from '../http/client.ts';
import { BigquerySchema } from './connection.ts';
import { classifyBigquery, openBigquery } from './link.ts';

const API = 'https://bigquery.googleapis.com';
const TOKENS = 'https://oauth2.googleapis.com/token';

/** The connector of Google BigQuery. */
export const bigquery = defineConnector({
  kind: 'bigquery',
  title: 'Google BigQuery',
  embedded: false,
  schema: BigquerySchema,
  check: ({ url, ca_certificate }) => [
    ...(url === undefined ? [] : checkUrl(url)),
    ...checkCertificate(ca_certificate),
  ],
  target: ({ url }) => targetOf(url ?? API),
  async open(connection, { connectTo }) {
    const { url = API, ca_certificate, service_account } = connection;
    const tls = tlsOf(url, ca_certificate);
    const tokenUrl = new URL(service_account.token_uri ?? TOKENS);
    const [api, tokens] = [await connectTo(targetOf(url)), await connectTo(targetOf(tokenUrl.href))];
    return openBigquery(
      { ...connection, agent: agentFor(api, tls), origin: originOf(api, tls) },
      { agent: agentFor(tokens, tls), url: tokenUrl },
    );
  },
  syntax: BIGQUERY_SYNTAX,
  placeholder: () => '?',
  classify: classifyBigquery,
  explain: explainRemote,
});
