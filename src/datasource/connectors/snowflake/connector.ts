import { SNOWFLAKE_SYNTAX } from '../../query/placeholders.ts';
import { defineConnector } from '../connector.ts';
import { checkCertificate, checkUrl, originOf, targetOf, tlsOf } from '../http/address.ts';
import { agentFor, explainRemote } from '../http/client.ts';
import { SnowflakeSchema } from './connection.ts';
import { classifySnowflake, openSnowflake } from './link.ts';

/** The connector of Snowflake. */
export const snowflake = defineConnector({
  kind: 'snowflake',
  title: 'Snowflake',
  embedded: false,
  readsByWords: true,
  schema: SnowflakeSchema,
  check({ private_key, token, url, ca_certificate }) {
    const isTwice = private_key !== undefined && token !== undefined;
    return [
      ...(isTwice ? [{ path: '/token', message: 'cannot be given together with private_key' }] : []),
      ...(url === undefined ? [] : checkUrl(url)),
      ...checkCertificate(ca_certificate),
    ];
  },
  target: ({ account, url }) => targetOf(url ?? urlOf(account)),
  async open(connection, { connectTo }) {
    const base = connection.url ?? urlOf(connection.account);
    const route = await connectTo(targetOf(base));
    const tls = tlsOf(base, connection.ca_certificate);
    return openSnowflake({ ...connection, agent: agentFor(route, tls), origin: originOf(route, tls) });
  },
  syntax: SNOWFLAKE_SYNTAX,
  placeholder: () => '?',
  classify: classifySnowflake,
  explain: explainRemote,
});

function urlOf(account: string): string {
  // Host names cannot contain an underscore.
  return `https://${account.toLowerCase().replaceAll('_', '-')}.snowflakecomputing.com`;
}
