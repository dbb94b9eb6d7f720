/**
 * How far a server has to prove who it is, in the words of PostgreSQL. Where a connection says nothing, a public address
 * is spoken to over verified TLS only; a loopback or private one with whatever it offers.
 */
import { X509Certificate } from 'node:crypto';
import { type Static, Type } from 'typebox';
import type { EgressRoute } from './egress-route.ts';

export const TlsMode = Type.Union(
  [
    Type.Literal('disable'),
    Type.Literal('prefer'),
    Type.Literal('require'),
    Type.Literal('verify-ca'),
    Type.Literal('verify-full'),
  ],
  {
    title: 'TLS',
    description:
      '`verify-full` checks certificate and host name, `verify-ca` the certificate only; `require` encrypts without checking, `prefer` encrypts if the server can, `disable` never does. Unset: `verify-full` for public addresses, `prefer` for loopback and private ones.',
  },
);
export type TlsMode = Static<typeof TlsMode>;

export const CaCertificate = Type.String({
  title: 'CA certificate',
  description:
    'Certificates, in PEM, that the certificate of the server is checked with instead of the system’s.',
  pattern: '^\\s*-----BEGIN CERTIFICATE-----',
  maxLength: 200_000,
});

/** Options for `tls.connect`. */
export interface TlsOptions {
  readonly rejectUnauthorized: boolean;
  readonly ca?: string;
  readonly checkServerIdentity?: () => undefined;
}

/** What is tried, in this order; the next only when the server has no TLS. `false` is without TLS. */
export type TlsAttempts = readonly [TlsOptions | false, ...(TlsOptions | false)[]];

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

/** Opens with the first attempt that the server has TLS for. `lacksTls` tells an error that means that it has none. */
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

/** Whether text holds certificates that can be used. */
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
