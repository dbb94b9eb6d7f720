/** Servers that are named by a URL. */
import type { Violation } from '#src/core/errors.ts';
import type { EgressRoute } from '../../egress/egress-route.ts';
import { parseHost } from '../../egress/ip-address.ts';
import { isCertificate, type TlsOptions } from '../../egress/tls-mode.ts';
import { DatasourceFailure } from '../../failure.ts';
import type { Target } from '../connector.ts';

/** What the pattern of the member cannot say. */
export function checkUrl(url: string): readonly Violation[] {
  const isUsable =
    URL.canParse(url) && targetOf(url).port > 0 && parseHost(new URL(url).hostname).kind !== 'invalid';
  return isUsable
    ? []
    : [{ path: '/url', message: 'must be a URL with one host, such as https://db.example.com:8443' }];
}

export function checkCertificate(pem: string | undefined): readonly Violation[] {
  if (pem === undefined || isCertificate(pem)) return [];
  return [{ path: '/ca_certificate', message: 'must be certificates in PEM' }];
}

export function targetOf(url: string): Target {
  if (!URL.canParse(url)) throw new DatasourceFailure('failed');
  const { hostname, port, protocol } = new URL(url);
  return { host: hostname, port: port === '' ? (protocol === 'https:' ? 443 : 80) : Number(port) };
}

export function tlsOf(url: string, ca?: string): TlsOptions | false {
  return url.startsWith('https:') && { rejectUnauthorized: true, ...(ca !== undefined && { ca }) };
}

/** The server as a URL again, its host spelled as the route spells it. */
export function originOf({ host, port }: EgressRoute, tls: TlsOptions | false): string {
  return `${tls === false ? 'http' : 'https'}://${host.includes(':') ? `[${host}]` : host}:${port}`;
}
