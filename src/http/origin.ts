import { AppError } from '#src/core/errors.ts';

/** Throws `cross_origin` when a browser says that a page of another origin sends this. Silent without a browser. */
export function requireSameOrigin(origin: string, fetchSite: string, host: string): void {
  if (fetchSite !== '' && fetchSite !== 'same-origin' && fetchSite !== 'none') refuse();
  if (origin !== '' && hostOf(origin) !== host.toLowerCase()) refuse();
}

/** Without the scheme: behind a proxy that ends TLS we do not know ours. Empty for `null` and what is no origin. */
function hostOf(origin: string): string {
  const match = /^https?:\/\/([^/?#@\\\s]+)$/.exec(origin.toLowerCase());
  return match?.[1] ?? '';
}

function refuse(): never {
  throw new AppError('cross_origin', 'A page of another origin may not change this.');
}
