/** Schemas of members that several kinds of connections share. */
import { type Static, type TObject, Type } from 'typebox';
import { CaCertificate, TlsMode } from '../egress/tls-mode.ts';
import { exactText } from '../exact-text.ts';

/** Accepts exactly one host. Whether it exists is not checked. */
export const HostMember = exactText(
  {
    title: 'Host',
    description: 'Name or IP address of the server.',
    pattern: '^(\\[[0-9A-Fa-f:.]+\\]|[0-9A-Fa-f]*:[0-9A-Fa-f:.]*|[^\\x00-,/:-@\\[-\\^`{-\\x9f]+)$',
    maxLength: 253,
    examples: ['db.example.com'],
  },
  /^(\[[0-9A-Fa-f:.]+\]|[0-9A-Fa-f]*:[0-9A-Fa-f:.]*|[\p{L}\p{N}\p{M}._-]+)$/u,
);

/** Returns the schema of a port. The database's usual port is the example. */
export function portMember(usual: number) {
  return Type.Integer({
    title: 'Port',
    description: `TCP port of the server, usually ${usual}.`,
    minimum: 1,
    maximum: 65_535,
    examples: [usual],
  });
}

const TEXT = { minLength: 1, maxLength: 1024, pattern: '^[^\\x00-\\x1f\\x7f-\\x9f]*$' };

/** Returns the schema of a name: one line of text. */
export function nameMember(title: string, description: string, example: string) {
  return Type.String({ title, description, ...TEXT, examples: [example] });
}

/** The name of a database account. */
export const User = nameMember('User', 'Name of the account in the database.', 'analyst');

/** The password of a database account. */
export const Password = Type.String({
  title: 'Password',
  description: 'Password of the account; empty when it has none.',
  maxLength: 8192,
  writeOnly: true,
  examples: ['secret'],
});

/** Returns the members of a database server that has accounts with passwords: its address, the account, and TLS. */
export function serverMembers(
  usualPort: number,
  database = nameMember('Database', 'Database that is used where a statement names none.', 'sales'),
) {
  return {
    host: HostMember,
    port: portMember(usualPort),
    database,
    user: User,
    password: Password,
    tls: Type.Optional(TlsMode),
    ca_certificate: Type.Optional(CaCertificate),
  };
}

/** An account on a database server, with the checks that the server's certificate must pass. */
export type ServerAccount = Omit<Static<TObject<ReturnType<typeof serverMembers>>>, 'host' | 'port'>;

/** Returns the schema of a secret text. */
export function secretMember(title: string, description: string, example: string) {
  return Type.String({
    title,
    description,
    minLength: 1,
    maxLength: 65_536,
    writeOnly: true,
    examples: [example],
  });
}

/** The base URL of a server, with `http` or `https`. */
export const HttpUrl = exactText(
  {
    title: 'URL',
    description:
      'Base URL of the server: scheme, host and port, nothing else. With `https` the certificate is checked; `http` is not encrypted.',
    pattern: '^https?://[^/?#@\\x09-\\x0d ]+/?$',
    maxLength: 1024,
  },
  /^https?:\/\/[^/?#@\s]+\/?$/u,
);

/** The base URL of a cloud service, which must use `https`. */
export const HttpsUrl = exactText(
  {
    title: 'URL',
    description:
      'Base URL of the service, if it is not the usual one. It has a scheme, a host and a port, and nothing else.',
    pattern: '^https://[^/?#@\\x09-\\x0d ]+/?$',
    maxLength: 1024,
  },
  /^https:\/\/[^/?#@\s]+\/?$/u,
);

/** A placeholder for a private key in examples. */
export const EXAMPLE_KEY = '-----BEGIN PRIVATE KEY-----\nMIIE…\n-----END PRIVATE KEY-----\n';

/** An RSA private key. */
export const PrivateKey = exactText(
  {
    title: 'Private key',
    description: 'Unencrypted RSA private key in PEM.',
    pattern: '^[^!-~]*-----BEGIN (RSA )?PRIVATE KEY-----',
    maxLength: 65_536,
    writeOnly: true,
    examples: [EXAMPLE_KEY],
  },
  /^\s*-----BEGIN (RSA )?PRIVATE KEY-----/u,
);
