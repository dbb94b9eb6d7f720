import { Type } from 'typebox';
import { CaCertificate } from '../../egress/tls-mode.ts';
import { SNOWFLAKE_SYNTAX } from '../../query/placeholders.ts';
import { defineConnector } from '../connector.ts';
import { checkCertificate, checkUrl, originOf, targetOf, tlsOf } from '../http/address.ts';
import { agentFor, explainRemote } from '../http/client.ts';
import { HttpsUrl, nameMember, PrivateKey, secretMember, User } from '../members.ts';
import { classifySnowflake, openSnowflake } from './session.ts';

/** The connector of Snowflake. */
export const snowflake = defineConnector({
  kind: 'snowflake',
  title: 'Snowflake',
  embedded: false,
  readsByWords: true,
  schema: Type.Object(
    {
      kind: Type.Literal('snowflake'),
      account: Type.String({
        title: 'Account',
        description:
          'Account identifier: organization and account name, or the account locator with its region.',
        pattern: '^[A-Za-z0-9_-]+(\\.[A-Za-z0-9_-]+)*$',
        maxLength: 200,
        examples: ['myorg-myaccount', 'xy12345.eu-central-1'],
      }),
      user: User,
      private_key: Type.Optional(PrivateKey),
      token: Type.Optional(secretMember('Token', 'Programmatic access token of the user.', 'secret')),
      warehouse: nameMember('Warehouse', 'Warehouse that statements run in.', 'COMPUTE_WH'),
      database: nameMember('Database', 'Database that is used where a statement names none.', 'SALES'),
      schema: nameMember('Schema', 'Schema that is used where a statement names none.', 'PUBLIC'),
      role: Type.Optional(nameMember('Role', 'Role of the session; the user’s own when unset.', 'ANALYST')),
      url: Type.Optional(HttpsUrl),
      ca_certificate: Type.Optional(CaCertificate),
    },
    {
      title: 'Snowflake',
      description:
        'A Snowflake account, over its SQL API, with a `token` or the `private_key` of a key pair: Snowflake no longer accepts passwords from programs.',
      additionalProperties: false,
      anyOf: [{ required: ['token'] }, { required: ['private_key'] }],
      examples: [
        {
          kind: 'snowflake',
          account: 'myorg-myaccount',
          user: 'ANALYST',
          token: 'secret',
          warehouse: 'COMPUTE_WH',
          database: 'SALES',
          schema: 'PUBLIC',
        },
      ],
    },
  ),
  check({ private_key, token, url, ca_certificate }) {
    const isTwice = private_key !== undefined && token !== undefined;
    return [
      ...(isTwice ? [{ path: '/token', message: 'cannot be given together with private_key' }] : []),
      ...(url === undefined ? [] : checkUrl(url)),
      ...checkCertificate(ca_certificate),
    ];
  },
  target: ({ account, url }) => targetOf(url ?? urlOf(account)),
  async open({ url, ca_certificate, ...rest }, { connectTo }) {
    const base = url ?? urlOf(rest.account);
    const route = await connectTo(targetOf(base));
    const tls = tlsOf(base, ca_certificate);
    return openSnowflake({ ...rest, agent: agentFor(route, tls), origin: originOf(route, tls) });
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
