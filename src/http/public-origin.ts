import { invalidRequest } from './violations.ts';

const HOST = /^(?:[a-z0-9](?:[a-z0-9._-]{0,253})|\[[0-9a-f:.]{2,45}\])(?::\d{1,5})?$/i;

/**
 * The address under which the caller has reached this server, such as `https://troupe.example`. It is only as true as
 * the request, so it may go into an answer to this caller and nowhere else. Throws `invalid_request` for a host that is
 * none.
 */
export function originOf(host: string, forwardedProto: string): string {
  if (!HOST.test(host)) throw invalidRequest([{ path: 'header/host', message: 'is not a host name' }]);
  const [nearestToCaller = ''] = forwardedProto.split(',');
  return `${nearestToCaller.trim().toLowerCase() === 'https' ? 'https' : 'http'}://${host}`;
}
