/** Members that connections of several kinds have. */
import { Type } from 'typebox';

/** Not whether there is such a host: only that it is one host and nothing else. */
export const Host = Type.String({
  title: 'Host',
  description: 'Name or IP address of the server.',
  pattern: '^(\\[[0-9A-Fa-f:.]+\\]|[0-9A-Fa-f:]*:[0-9A-Fa-f:.]*|[\\p{L}\\p{N}\\p{M}._-]+)$',
  maxLength: 253,
  examples: ['db.example.com'],
});

export function portMember(usual: number) {
  return Type.Integer({
    title: 'Port',
    description: `TCP port of the server, usually ${usual}.`,
    minimum: 1,
    maximum: 65_535,
    examples: [usual],
  });
}

const TEXT = { minLength: 1, maxLength: 1024, pattern: '^\\P{Cc}*$' };

export function nameMember(title: string, description: string, example: string) {
  return Type.String({ title, description, ...TEXT, examples: [example] });
}

export const User = nameMember('User', 'Name of the account in the database.', 'analyst');

export const Password = Type.String({
  title: 'Password',
  description: 'Password of the account; empty when it has none.',
  maxLength: 8192,
  writeOnly: true,
  examples: ['secret'],
});

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

export const HttpUrl = Type.String({
  title: 'URL',
  description:
    'Where the server answers: scheme, host and port, nothing else. With `https` its certificate is checked; `http` sends everything as it is.',
  pattern: '^https?://[^/?#@\\s]+/?$',
  maxLength: 1024,
});

export const HttpsUrl = Type.String({
  title: 'URL',
  description:
    'Where the service answers, when that is not its usual address: scheme, host and port, nothing else.',
  pattern: '^https://[^/?#@\\s]+/?$',
  maxLength: 1024,
});

export const EXAMPLE_KEY = '-----BEGIN PRIVATE KEY-----\nMIIE…\n-----END PRIVATE KEY-----\n';

export const PrivateKey = Type.String({
  title: 'Private key',
  description: 'Unencrypted RSA private key in PEM.',
  pattern: '^\\s*-----BEGIN (RSA )?PRIVATE KEY-----',
  maxLength: 65_536,
  writeOnly: true,
  examples: [EXAMPLE_KEY],
});
