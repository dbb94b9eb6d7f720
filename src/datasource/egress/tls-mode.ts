/**
 * How strictly a database server must prove its identity, in PostgreSQL's terms (`sslmode`). When a connection does not
 * say, public addresses need verified TLS, and loopback and private addresses use TLS if the server offers it.
 */
import { X509Certificate } from 'node:crypto';
import { type Static, Type } from 'typebox';
import { exactText } from '../exact-text.ts';
import type { EgressRoute } from './egress-route.ts';

/** The schema of the member `tls`. */
export const TlsMode = Type.Enum(['disable', 'prefer', 'require', 'verify-ca', 'verify-full'], {
  type: 'string',
  title: 'TLS',
  description:
    '`verify-full` checks certificate and host name, `verify-ca` the certificate only; `require` encrypts without checking, `prefer` encrypts if the server can, `disable` never does. Unset: `verify-full` for public addresses, `prefer` for loopback and private ones.',
});
/** How strictly the server must prove its identity. */
export type TlsMode = Static<typeof TlsMode>;

/** The schema of the member `ca_certificate`. */
export const CaCertificate = exactText(
  {
    title: 'CA certificate',
    description:
      'Certificates in PEM. They replace the certificates of the system when the certificate of the database server is checked.',
    pattern: '^[^!-~]*-----BEGIN CERTIFICATE-----',
    maxLength: 200_000,
  },
  /^\s*-----BEGIN CERTIFICATE-----/u,
);

/** Options for `tls.connect`. */
export interface TlsOptions {
  readonly rejectUnauthorized: boolean;
  readonly ca?: string;
  readonly checkServerIdentity?: () => undefined;
}

/**
 * Attempts to connect, in order. The next one is made only when the server does not offer TLS.
 * `false` connects without TLS.
 */
export type TlsAttempts = readonly [TlsOptions | false, ...(TlsOptions | false)[]];

/** Returns the attempts for a TLS mode. Without a mode, the scope of the route and `ca` decide. */
export function tlsAttempts(
  mode: TlsMode | undefined,
  { scope }: Pick<EgressRoute, 'scope'>,
  ca?: string,
): TlsAttempts {
  const anchors = ca === undefined ? {} : { ca };
  switch (mode ?? (scope === 'public' || ca !== undefined ? 'verify-full' : 'prefer')) {
    case 'disable':
      return [false];
    case 'prefer':
      return [{ rejectUnauthorized: false }, false];
    case 'require':
      return [{ rejectUnauthorized: false }];
    case 'verify-ca':
      return [{ rejectUnauthorized: true, checkServerIdentity: () => undefined, ...anchors }];
    case 'verify-full':
      return [{ rejectUnauthorized: true, ...anchors }];
  }
}

/**
 * Returns the result of `open` for the first possible attempt. `lacksTls` recognises the error of a server without TLS.
 */
export async function withTls<T>(
  attempts: TlsAttempts,
  open: (tls: TlsOptions | false) => Promise<T>,
  lacksTls: (error: unknown) => boolean,
): Promise<T> {
  const [first, ...rest] = attempts;
  const [next, ...others] = rest;
  if (next === undefined) return open(first);
  try {
    return await open(first);
  } catch (error) {
    if (!lacksTls(error)) throw error;
    return withTls([next, ...others], open, lacksTls);
  }
}

/** Returns whether the text consists of at least one readable certificate. */
export function isCertificate(pem: string): boolean {
  const blocks = pem.match(/-----BEGIN CERTIFICATE-----[\s\S]*?-----END CERTIFICATE-----/g) ?? [];
  return blocks.length > 0 && blocks.every(isReadable);
}

function isReadable(block: string): boolean {
  try {
    new X509Certificate(block);
    return true;
  } catch {
    return false;
  }
}
