/** Reads IP addresses in every notation that a resolver understands, and writes each in one canonical form. */
import { isIP } from 'node:net';
import { domainToASCII } from 'node:url';

/** An IPv4 or IPv6 address. */
export interface IpAddress {
  readonly family: 4 | 6;
  /** Canonical: equal addresses have equal text. An IPv4 address inside IPv6 (`::ffff:…`) becomes plain IPv4. */
  readonly text: string;
  /** 4 or 16 bytes. */
  readonly bytes: readonly number[];
}

/** A host as a user wrote it: an address, a name, or neither. */
export type Host =
  | { readonly kind: 'address'; readonly address: IpAddress }
  | { readonly kind: 'name'; readonly name: string }
  | { readonly kind: 'invalid' };

const INVALID: Host = { kind: 'invalid' };
const NAME = /^(?=.{1,253}$)[a-z0-9_]([a-z0-9_-]{0,61}[a-z0-9_])?(\.[a-z0-9_]([a-z0-9_-]{0,61}[a-z0-9_])?)*$/;

/**
 * Parses a host. IPv4 in octal, decimal, hexadecimal or shortened notation becomes the address that a resolver would
 * connect to. Trailing dots, brackets and capitals make no difference. Zone ids are rejected.
 */
export function parseHost(text: string): Host {
  const bare = text.trim().replace(/^\[(.*)\]$/, '$1');
  if (bare.includes(':')) {
    const address = parseAddress(bare);
    return address === undefined ? INVALID : { kind: 'address', address };
  }
  if (/[^\p{L}\p{N}\p{M}._-]/u.test(bare)) return INVALID;
  const ascii = domainToASCII(bare.replace(/(?<!\.)\.+$/, ''));
  const address = parseAddress(ascii);
  if (address !== undefined) return { kind: 'address', address };
  return NAME.test(ascii) ? { kind: 'name', name: ascii } : INVALID;
}

/** Returns the address, or `undefined` when the text is not an address in ordinary notation or has a zone id. */
export function parseAddress(text: string): IpAddress | undefined {
  const family = text.includes('%') ? 0 : isIP(text);
  if (family === 4) return addressOf(text.split('.').map(Number));
  if (family === 6) return addressOf(bytesOf(text));
  return undefined;
}

/**
 * Returns the IPv4 address, or the first 64 bits of an IPv6 address: one client usually owns all of the rest.
 * Returns an empty text for a text that is not an address.
 */
export function networkOf(address: string): string {
  return parseAddress(address)?.bytes.slice(0, 8).join('.') ?? '';
}

const MAPPED = [0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff];

function addressOf(bytes: readonly number[]): IpAddress {
  if (bytes.length === 4) return { family: 4, text: bytes.join('.'), bytes };
  if (MAPPED.every((byte, at) => bytes[at] === byte)) return addressOf(bytes.slice(12));
  const groups = Array.from({ length: 8 }, (_, at) =>
    (bytes[at * 2]! * 256 + bytes[at * 2 + 1]!).toString(16),
  );
  return { family: 6, text: new URL(`http://[${groups.join(':')}]`).hostname.slice(1, -1), bytes };
}

function bytesOf(text: string): number[] {
  // `URL` writes an embedded IPv4 part as two groups, so there are only groups and at most one `::`.
  const [head = '', tail] = new URL(`http://[${text}]`).hostname.slice(1, -1).split('::');
  const groups = (part: string) =>
    part === '' ? [] : part.split(':').map((group) => Number.parseInt(group, 16));
  const [before, after] = [groups(head), groups(tail ?? '')];
  const all = [...before, ...Array<number>(8 - before.length - after.length).fill(0), ...after];
  return all.flatMap((group) => [group >> 8, group & 255]);
}
