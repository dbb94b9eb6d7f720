/**
 * The secret that admits any number of machines, for engines that start the same command many times. Its file holds 32 random bytes
 * and the digest of the server's certificate authority, by which a machine knows that it has reached this server.
 */
import { createHash, randomBytes, timingSafeEqual } from 'node:crypto';
import { existsSync, readFileSync, statSync } from 'node:fs';

const SECRET_BYTES = 32;
/** 32 bytes of the secret, and 32 of the digest. */
const TEXT = /^[A-Za-z0-9_-]{86}$/;

/** The two parts of the file. */
export interface NodeSecret {
  readonly secret: Buffer;
  /** SHA-256 of the DER form of the authority's certificate. */
  readonly authority: Buffer;
}

/** Reads the file on a node. Throws one line when it cannot be read, has another form, or is readable by everybody. */
export function readNodeSecret(file: string): NodeSecret {
  // The group may read the file, because Kubernetes gives files of a Secret to the group of the pod.
  return parse(file, 0o007);
}

/**
 * Returns the function that compares a secret with the secret in the file. A missing file is made. Throws one
 * line when the file cannot be used, other users can read it, or it is of another server.
 */
export function openNodeSecret(options: {
  readonly file: string;
  /** The digest of this server's authority. */
  readonly authority: Buffer;
  /** Replaces a file atomically; only its owner can read it. */
  readonly write: (path: string, text: string) => void;
}): (given: string) => boolean {
  const { file, authority, write } = options;
  if (!existsSync(file))
    write(file, `${Buffer.concat([randomBytes(SECRET_BYTES), authority]).toString('base64url')}\n`);
  const found = parse(file, 0o077);
  if (!found.authority.equals(authority))
    throw new Error(`${file} is the secret of another server: delete it, and the server makes a new one.`);
  const expected = digestOf(found.secret);
  // Digests have one length, so that the time of the comparison says nothing about the secret.
  return (given) => timingSafeEqual(digestOf(Buffer.from(given, 'base64url')), expected);
}

/** Returns whether an enrolling machine has sent the shared secret, and not the secret of an invitation. */
export function isNodeSecret(given: string): boolean {
  return Buffer.from(given, 'base64url').length === SECRET_BYTES;
}

function parse(file: string, forbidden: number): NodeSecret {
  let text: string;
  let mode: number;
  try {
    text = readFileSync(file, 'utf8').trim();
    mode = statSync(file).mode;
  } catch (error) {
    throw new Error(`The secret of kernel nodes cannot be read: ${(error as Error).message}.`, {
      cause: error,
    });
  }
  if (!TEXT.test(text))
    throw new Error(`${file} is no secret of kernel nodes. The server makes it: TROUPE_NODES_SECRET_FILE.`);
  if ((mode & forbidden) !== 0)
    throw new Error(`Other users can read ${file}: change its mode to 0600, and replace the secret.`);
  const bytes = Buffer.from(text, 'base64url');
  return { secret: bytes.subarray(0, SECRET_BYTES), authority: bytes.subarray(SECRET_BYTES) };
}

function digestOf(secret: Buffer): Buffer {
  return createHash('sha256').update(secret).digest();
}
