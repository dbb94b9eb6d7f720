import { sign } from 'node:crypto';
import { DatasourceFailure } from '../../failure.ts';

/** Returns a JWT (RFC 7519) with `claims`, signed by an RSA key in PEM. Throws `authentication` for an unusable key. */
export function signToken(
  privateKey: string,
  header: Readonly<Record<string, string>>,
  claims: Readonly<Record<string, string | number>>,
): string {
  const encode = (part: object) => Buffer.from(JSON.stringify(part)).toString('base64url');
  const content = `${encode({ alg: 'RS256', typ: 'JWT', ...header })}.${encode(claims)}`;
  try {
    return `${content}.${sign('sha256', Buffer.from(content), privateKey).toString('base64url')}`;
  } catch {
    throw new DatasourceFailure('authentication'); // the error may show parts of the key
  }
}
