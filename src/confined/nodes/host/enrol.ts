import { X509Certificate } from 'node:crypto';
import { connect, type TLSSocket } from 'node:tls';
import { asText } from '../../processes/json-shape.ts';
import { hasDigest, type Invitation } from '../invitation.ts';
import { readFirstLine, sendLine } from '../protocol.ts';
import type { StoredMembership } from './state-folder.ts';

export interface Enrolment {
  readonly membership: StoredMembership;
  /** Whether the certificate is good for one connection only. */
  readonly isTemporary: boolean;
}

/**
 * Makes a key and lets the server certify it. The server is believed if its certificate leads to the authority that the invitation
 * names. Rejects with one line of advice.
 */
export async function enrol(invitation: Invitation, name: string): Promise<Enrolment> {
  const { host, port, secret } = invitation;
  const { requestCertificate } = await import('../certificates.ts');
  const { key, request } = await requestCertificate(name);
  const socket = await reach(invitation);
  try {
    sendLine(socket, { op: 'enrol', secret: secret.toString('base64url'), name, request });
    const { first } = await readFirstLine(socket);
    if (first.op !== 'enrolled') throw new Error(asText(first.reason, 'reason'));
    const membership = {
      name: asText(first.name, 'name'),
      host,
      port,
      key,
      certificate: asText(first.certificate, 'certificate'),
      authority: asText(first.authority, 'authority'),
    };
    return { membership, isTemporary: first.temporary === true };
  } finally {
    socket.destroy();
  }
}

function reach({ host, port, authority }: Invitation): Promise<TLSSocket> {
  return new Promise((resolve, reject) => {
    const socket = connect({ host, port, rejectUnauthorized: false, minVersion: 'TLSv1.3', timeout: 10_000 });
    const fail = (words: string): void => {
      socket.destroy();
      reject(new Error(words));
    };
    socket.once('timeout', () => fail(`${host}:${port} does not answer.`));
    socket.once('error', (error) => fail(`Cannot reach ${host}:${port}: ${error.message}.`));
    socket.once('secureConnect', () => {
      if (!isOf(authority, socket))
        return fail(`The server at ${host}:${port} is not the one that made the invitation or the secret.`);
      socket
        .setTimeout(0)
        .removeAllListeners('error')
        .on('error', () => undefined);
      resolve(socket);
    });
  });
}

/** Returns whether the peer's certificate is signed by the authority with this digest. */
function isOf(digest: Buffer, socket: TLSSocket): boolean {
  const { raw, issuerCertificate } = socket.getPeerCertificate(true);
  if (issuerCertificate === undefined || !hasDigest(issuerCertificate.raw, digest)) return false;
  const authority = new X509Certificate(issuerCertificate.raw);
  return authority.ca && new X509Certificate(raw).verify(authority.publicKey);
}
