import { randomBytes } from 'node:crypto';

const MAX_CHARACTERS = 128;
const boot = randomBytes(6).toString('hex');
let count = 0;

/** The caller's id when it is 1 to 128 of `[A-Za-z0-9._-]`, else a new one that is unique across restarts. */
export function requestIdFor(header: string): string {
  if (header !== '' && header.length <= MAX_CHARACTERS && /^[A-Za-z0-9._-]+$/.test(header)) return header;
  return `req_${boot}${(++count).toString(36)}`;
}
