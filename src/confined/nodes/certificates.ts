/** X.509 certificates of nodes and their server: keys are ECDSA P-256. The library is loaded by servers and machines with nodes only. */
import 'reflect-metadata'; // @peculiar/x509 needs it
import { type webcrypto as Crypto, createPublicKey, webcrypto } from 'node:crypto';
import {
  BasicConstraintsExtension,
  ExtendedKeyUsage,
  ExtendedKeyUsageExtension,
  KeyUsageFlags,
  KeyUsagesExtension,
  PemConverter,
  Pkcs10CertificateRequest,
  Pkcs10CertificateRequestGenerator,
  X509Certificate,
  X509CertificateGenerator,
} from '@peculiar/x509';

const ALGORITHM = { name: 'ECDSA', namedCurve: 'P-256', hash: 'SHA-256' };
const DAY_MS = 86_400_000;
const AUTHORITY_DAYS = 3650;
const SERVER_DAYS = 3650;
/** How long the certificate of a node is valid. A node renews its certificate long before the end. */
const NODE_DAYS = 90;

/** A private key and its certificate, as PEM. */
export interface Credentials {
  readonly key: string;
  readonly cert: string;
}

/** Makes a certificate authority. */
export async function makeAuthority(): Promise<Credentials> {
  const keys = await newKeys();
  const cert = await X509CertificateGenerator.createSelfSigned({
    name: 'CN=Troupe kernel nodes',
    keys,
    signingAlgorithm: ALGORITHM,
    ...validFor(AUTHORITY_DAYS),
    extensions: [
      new BasicConstraintsExtension(true, 0, true),
      new KeyUsagesExtension(KeyUsageFlags.keyCertSign, true),
    ],
  });
  return { key: await exportKey(keys), cert: cert.toString('pem') };
}

/** Makes the key and certificate of a server, which are kept in memory only. */
export async function makeServerCredentials(authority: Credentials): Promise<Credentials> {
  const keys = await newKeys();
  const cert = await sign(authority, 'CN=server', keys.publicKey, SERVER_DAYS, ExtendedKeyUsage.serverAuth);
  return { key: await exportKey(keys), cert };
}

/** Returns the request to certify a key, and the key: a new one, or `key` (PEM). */
export async function requestCertificate(
  name: string,
  key?: string,
): Promise<{ readonly key: string; readonly request: string }> {
  const keys = key === undefined ? await newKeys() : await importKeys(key);
  const request = await Pkcs10CertificateRequestGenerator.create({
    name: `CN=${name}`,
    keys,
    signingAlgorithm: ALGORITHM,
  });
  return { key: key ?? (await exportKey(keys)), request: request.toString('pem') };
}

/** Returns the certificate of a node. Throws when the request is not signed with its own key. */
export async function signNode(authority: Credentials, name: string, requestPem: string): Promise<string> {
  const request = new Pkcs10CertificateRequest(requestPem);
  if (!(await request.verify())) throw new Error('The request for a certificate is not signed with its key.');
  const key = await request.publicKey.export(ALGORITHM, ['verify']);
  return sign(authority, `CN=${name}`, key, NODE_DAYS, ExtendedKeyUsage.clientAuth);
}

async function sign(
  authority: Credentials,
  subject: string,
  publicKey: Crypto.CryptoKey,
  days: number,
  usage: ExtendedKeyUsage,
): Promise<string> {
  const signingKey = await webcrypto.subtle.importKey(
    'pkcs8',
    PemConverter.decodeFirst(authority.key),
    ALGORITHM,
    false,
    ['sign'],
  );
  const cert = await X509CertificateGenerator.create({
    subject,
    issuer: new X509Certificate(authority.cert).subject,
    publicKey,
    signingKey,
    signingAlgorithm: ALGORITHM,
    ...validFor(days),
    extensions: [
      new BasicConstraintsExtension(false, undefined, true),
      new ExtendedKeyUsageExtension([usage], true),
    ],
  });
  return cert.toString('pem');
}

/** Certificates are valid from a day before, because the clocks of two machines may differ. */
function validFor(days: number) {
  const now = Date.now();
  return { notBefore: new Date(now - DAY_MS), notAfter: new Date(now + days * DAY_MS) };
}

async function newKeys(): Promise<Crypto.CryptoKeyPair> {
  return (await webcrypto.subtle.generateKey(ALGORITHM, true, ['sign', 'verify'])) as Crypto.CryptoKeyPair;
}

async function importKeys(pem: string): Promise<Crypto.CryptoKeyPair> {
  const spki = createPublicKey(pem).export({ type: 'spki', format: 'der' });
  const [privateKey, publicKey] = await Promise.all([
    webcrypto.subtle.importKey('pkcs8', PemConverter.decodeFirst(pem), ALGORITHM, true, ['sign']),
    webcrypto.subtle.importKey('spki', spki, ALGORITHM, true, ['verify']),
  ]);
  return { privateKey, publicKey };
}

async function exportKey({ privateKey }: Crypto.CryptoKeyPair): Promise<string> {
  return PemConverter.encode(await webcrypto.subtle.exportKey('pkcs8', privateKey), 'PRIVATE KEY');
}
