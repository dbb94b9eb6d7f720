import { Type } from 'typebox';
import { CaCertificate } from '../../egress/tls-mode.ts';
import { TRINO_SYNTAX } from '../../query/placeholders.ts';
import { defineConnector } from '../connector.ts';
import { checkCertificate, checkUrl, originOf, targetOf, tlsOf } from '../http/address.ts';
import { agentFor, explainRemote } from '../http/client.ts';
import { HttpUrl, nameMember, secretMember, User } from '../members.ts';
import { classifyTrino, openTrino } from './session.ts';

/** The connector of Trino. */
export const trino = defineConnector({
  kind: 'trino',
  title: 'Trino',
  embedded: false,
  readsByWords: true,
  schema: Type.Object(
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
  ),
  check: ({ url, password, ca_certificate }) => [
    ...checkUrl(url),
    ...(password !== undefined && !url.startsWith('https:')
      ? [{ path: '/password', message: 'is sent over https only, and the url is not' }]
      : []),
    ...checkCertificate(ca_certificate),
  ],
  target: ({ url }) => targetOf(url),
  async open({ url, ca_certificate, ...rest }, { connectTo }) {
    const route = await connectTo(targetOf(url));
    const tls = tlsOf(url, ca_certificate);
    return openTrino({ ...rest, agent: agentFor(route, tls), origin: originOf(route, tls) });
  },
  syntax: TRINO_SYNTAX,
  placeholder: () => '?',
  classify: classifyTrino,
  explain: explainRemote,
});
