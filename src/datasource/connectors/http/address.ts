/** Servers that a connection names by a URL. */
import type { Violation } from '#src/base/errors/errors.ts';
import { parseHost } from '#src/base/net/ip-address.ts';
import type { EgressRoute } from '../../egress/egress-route.ts';
import { isCertificate, type TlsOptions } from '../../egress/tls-mode.ts';
import { DatasourceFailure } from '../../failure.ts';
import type { Target } from '../link.ts';

/** Returns a violation when the URL matches the schema's pattern but names no usable host or port. */
export function checkUrl(url: string): readonly Violation[] {
  const isUsable =
    URL.canParse(url) && targetOf(url).port > 0 && parseHost(new URL(url).hostname).kind !== 'invalid';
  return isUsable
    ? []
    : [{ path: '/url', message: 'must be a URL with one host, such as https://db.example.com:8443' }];
}

/** Returns a violation when the text is not readable certificates. */
export function checkCertificate(pem: string | undefined): readonly Violation[] {
  if (pem === undefined || isCertificate(pem)) return [];
  return [{ path: '/ca_certificate', message: 'must be certificates in PEM' }];
}

/** Returns host and port of a URL. Throws `DatasourceFailure` when it is not one. */
export function targetOf(url: string): Target {
  if (!URL.canParse(url)) throw new DatasourceFailure('failed');
  const { hostname, port, protocol } = new URL(url);
  return { host: hostname, port: port === '' ? (protocol === 'https:' ? 443 : 80) : Number(port) };
}

/** Returns the TLS options for an `https` URL, `false` for `http`. */
export function tlsOf(url: string, ca?: string): TlsOptions | false {
  return url.startsWith('https:') && { rejectUnauthorized: true, ...(ca !== undefined && { ca }) };
}

/** Returns the base URL of a route, with the host as the route spells it. */
export function originOf({ host, port }: EgressRoute, tls: TlsOptions | false): string {
  return `${tls === false ? 'http' : 'https'}://${host.includes(':') ? `[${host}]` : host}:${port}`;
}
