/** Where a request comes from (its browser origin), and the address under which its caller reaches this server. */
import { AppError } from '#src/base/errors/errors.ts';
import { invalidRequest } from './violations.ts';

const HOST = /^(?:[a-z0-9](?:[a-z0-9._-]{0,253})|\[[0-9a-f:.]{2,45}\])(?::\d{1,5})?$/i;

/** The headers in which a browser reports the origin and the host of a request; empty when missing. */
export interface RequestOrigin {
  readonly origin: string;
  readonly fetchSite: string;
  readonly host: string;
  /**
   * `https` when a proxy in front received the request over TLS. Pages of other origins cannot set this header without a
   * preflight request.
   */
  readonly forwardedProto: string;
}

/**
 * Throws `cross_origin` when a browser says that a page of another origin sends the request. Requests that do not come from a
 * browser carry neither header and pass. `publicUrl` is the address at which browsers reach this server, if it is configured:
 * then only its pages pass. Otherwise pages pass whose address, with its scheme, is the one that the request names.
 */
export function requireSameOrigin(from: RequestOrigin, publicUrl: string | undefined): void {
  const { origin, fetchSite, host, forwardedProto } = from;
  // Pages cannot set `Sec-Fetch-Site`: the browser has compared the origins itself, before any proxy.
  if (fetchSite === 'same-origin') return;
  if (fetchSite !== '' && fetchSite !== 'none') refuse();
  if (origin === '') return;
  const own = publicUrl ?? (HOST.test(host) ? publicOriginOf(host, forwardedProto) : undefined);
  if (own === undefined || originOf(own) !== originOf(origin)) refuse();
}

/** Returns the origin of a URL without the default port; undefined for `null` and for text that is not a URL. */
function originOf(url: string): string | undefined {
  return URL.canParse(url) ? new URL(url).origin : undefined;
}

function refuse(): never {
  throw new AppError('cross_origin', 'A page of another origin may not change this.');
}

/**
 * Returns the address under which the caller reached this server, such as `https://troupe.example`. The address comes from the
 * request's own headers, so only the reply to this caller may contain it. Throws `invalid_request` when `host` is not a host
 * name.
 */
export function publicOriginOf(host: string, forwardedProto: string): string {
  if (!HOST.test(host)) throw invalidRequest([{ path: 'header/host', message: 'is not a host name' }]);
  return `${isForwardedTls(forwardedProto) ? 'https' : 'http'}://${host}`;
}

/** Returns whether browsers reach this server over TLS. */
export function isSecureOrigin(forwardedProto: string, publicUrl: string | undefined): boolean {
  return publicUrl === undefined ? isForwardedTls(forwardedProto) : publicUrl.startsWith('https:');
}

function isForwardedTls(forwardedProto: string): boolean {
  const [nearestToCaller = ''] = forwardedProto.split(',');
  return nearestToCaller.trim().toLowerCase() === 'https';
}
