/**
 * The cookie of a browser's sign-in. All ports of one host share their cookies, so the name of the cookie contains the port:
 * several servers on one machine do not sign each other out.
 */
import { AppError } from '#src/base/errors/errors.ts';
import type { WireRequest } from '../wire-exchange.ts';
import { isSecureOrigin, requireSameOrigin } from './origin.ts';

/** A longer header is not searched. Browsers send at most 4 KiB for each cookie. */
const MAX_COOKIES_LENGTH = 16_384;

/** The headers that name and protect the cookie. */
export interface CookieRequest {
  readonly host: string;
  readonly forwardedProto: string;
}

/**
 * Returns the name of a cookie of this server. Over TLS the name has the prefix that makes browsers accept the cookie only from
 * this very host, so that a neighbouring host cannot plant one.
 */
export function cookieNameOf(
  name: string,
  { host, forwardedProto }: CookieRequest,
  publicUrl?: string,
): string {
  const [, port] = /:(\d{1,5})$/.exec(host) ?? [];
  const named = port === undefined ? name : `${name}-${port}`;
  return isSecureOrigin(forwardedProto, publicUrl) ? `__Host-${named}` : named;
}

/** Returns the value of a `Set-Cookie` header for a cookie that scripts cannot read. */
export function setCookie(
  name: string,
  value: string,
  from: CookieRequest,
  options: { readonly publicUrl: string | undefined; readonly maxAgeS: number },
): string {
  const { publicUrl, maxAgeS } = options;
  const secure = isSecureOrigin(from.forwardedProto, publicUrl) ? '; Secure' : '';
  const named = cookieNameOf(name, from, publicUrl);
  return `${named}=${value}; Path=/; Max-Age=${maxAgeS}; HttpOnly; SameSite=Lax${secure}`;
}

/**
 * Returns the value of a cookie in a `Cookie` header; undefined when the header does not contain
 * it.
 */
export function cookieIn(header: string, name: string): string | undefined {
  if (header.length > MAX_COOKIES_LENGTH) return undefined;
  for (const part of header.split(';')) {
    const at = part.indexOf('=');
    if (part.slice(0, at).trim() === name) return part.slice(at + 1).trim();
  }
  return undefined;
}

/** The cookie of an attempt to sign in with the identity provider. */
export const ATTEMPT_COOKIE = 'troupe-sign-in';

export const SIGN_IN_COOKIE = 'troupe-session';

/**
 * Returns the secret of the sign-in whose cookie a request has; undefined without one. Throws `cross_origin` when a page of another
 * origin sends the request. A browser adds the cookie to requests of other pages of the same site as well, such as those of another
 * port, so a request that changes something has to say where it comes from.
 */
export function signInSecretOf(
  req: WireRequest,
  publicUrl: string | undefined,
  isMutation: boolean,
): string | undefined {
  const cookies = req.getHeader('cookie');
  if (cookies === '') return undefined;
  const [host, forwardedProto] = [req.getHeader('host'), req.getHeader('x-forwarded-proto')];
  const secret = cookieIn(cookies, cookieNameOf(SIGN_IN_COOKIE, { host, forwardedProto }, publicUrl));
  if (secret === undefined || secret === '') return undefined;
  const [origin, fetchSite] = [req.getHeader('origin'), req.getHeader('sec-fetch-site')];
  if (isMutation && origin === '' && fetchSite === '')
    throw new AppError(
      'cross_origin',
      'A request that is signed in by a cookie must have the header Origin or Sec-Fetch-Site.',
    );
  requireSameOrigin({ origin, fetchSite, host, forwardedProto }, publicUrl);
  return secret;
}
