import { Type } from 'typebox';
import { CaCertificate } from '../../egress/tls-mode.ts';
import { exactText } from '../../exact-text.ts';
import { BIGQUERY_SYNTAX } from '../../query/placeholders.ts';
import { defineConnector } from '../connector.ts';
import { checkCertificate, checkUrl, originOf, targetOf, tlsOf } from '../http/address.ts';
import { agentFor, explainRemote } from '../http/client.ts';
import { EXAMPLE_KEY, HttpsUrl, nameMember, PrivateKey } from '../members.ts';
import { classifyBigquery, openBigquery } from './session.ts';

const API = 'https://bigquery.googleapis.com';
const TOKENS = 'https://oauth2.googleapis.com/token';

const Text = Type.Optional(Type.String({ maxLength: 4096 }));

const ServiceAccount = Type.Object(
  {
    client_email: Type.String({ minLength: 3, maxLength: 512 }),
    private_key: PrivateKey,
    token_uri: Type.Optional(
      exactText(
        { pattern: '^https://[^/?#@\\x09-\\x0d ]+/[^#\\x09-\\x0d ]*$', maxLength: 1024 },
        /^https:\/\/[^/?#@\s]+\/[^\s#]*$/u,
      ),
    ),
    type: Type.Optional(Type.Literal('service_account')),
    project_id: Text,
    private_key_id: Text,
    client_id: Text,
    auth_uri: Text,
    auth_provider_x509_cert_url: Text,
    client_x509_cert_url: Text,
    universe_domain: Text,
  },
  {
    title: 'Service account',
    description: 'The key file of a service account, as Google gives it.',
    additionalProperties: false,
    writeOnly: true,
  },
);

/** The connector of Google BigQuery. */
export const bigquery = defineConnector({
  kind: 'bigquery',
  title: 'Google BigQuery',
  embedded: false,
  schema: Type.Object(
    {
      kind: Type.Literal('bigquery'),
      project: nameMember('Project', 'Project that queries run in and are billed to.', 'my-project'),
      dataset: nameMember('Dataset', 'Dataset that is used where a statement names none.', 'sales'),
      service_account: ServiceAccount,
      location: Type.Optional(
        nameMember('Location', 'Where queries run; that of their data when unset.', 'EU'),
      ),
      url: Type.Optional(HttpsUrl),
      ca_certificate: Type.Optional(CaCertificate),
    },
    {
      title: 'Google BigQuery',
      description: 'A BigQuery project, with a service account.',
      additionalProperties: false,
      examples: [
        {
          kind: 'bigquery',
          project: 'my-project',
          dataset: 'sales',
          service_account: {
            client_email: 'analyst@my-project.iam.gserviceaccount.com',
            private_key: EXAMPLE_KEY,
          },
        },
      ],
    },
  ),
  check: ({ url, ca_certificate }) => [
    ...(url === undefined ? [] : checkUrl(url)),
    ...checkCertificate(ca_certificate),
  ],
  target: ({ url }) => targetOf(url ?? API),
  async open({ url = API, ca_certificate, service_account, ...rest }, { connectTo }) {
    const tls = tlsOf(url, ca_certificate);
    const tokenUrl = new URL(service_account.token_uri ?? TOKENS);
    const [api, tokens] = [await connectTo(targetOf(url)), await connectTo(targetOf(tokenUrl.href))];
    return openBigquery({
      ...rest,
      agent: agentFor(api, tls),
      origin: originOf(api, tls),
      tokens: { agent: agentFor(tokens, tls), url: tokenUrl },
      email: service_account.client_email,
      privateKey: service_account.private_key,
    });
  },
  syntax: BIGQUERY_SYNTAX,
  placeholder: () => '?',
  classify: classifyBigquery,
  explain: explainRemote,
});
