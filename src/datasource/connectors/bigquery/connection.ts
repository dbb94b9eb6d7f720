import { type Static, Type } from 'typebox';
import { CaCertificate } from '../../egress/tls-mode.ts';
import { exactText } from '../../exact-text.ts';
import { EXAMPLE_KEY, HttpsUrl, nameMember, PrivateKey } from '../members.ts';

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

export const BigquerySchema = Type.Object(
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
);

/** The stored connection to a BigQuery project. */
export type BigqueryConnection = Static<typeof BigquerySchema>;
