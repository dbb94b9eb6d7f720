import { sign } from 'node:crypto';
import { DatasourceFailure } from '../../failure.ts';

/** A token that says `claims`, signed with an RSA key in PEM. Throws `authentication` when it is no such key. */
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
