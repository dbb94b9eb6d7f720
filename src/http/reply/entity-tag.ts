/**
 * Entity tags and the conditions that requests put on them (RFC 9110, sections 8.8.3 and 13.1). A tag names the state of a
 * record. A client that has read a record can request it only if it has changed, or change it only if it has not.
 */
import { createHash } from 'node:crypto';
import { AppError } from '#src/base/errors/errors.ts';
import type { READ_CONDITION, WRITE_CONDITIONS } from '#src/contract/wire/operations/parts.ts';
import { invalidRequest } from '../edge/violations.ts';
import type { BytesReply, EmptyReply, JsonReply } from './reply.ts';

/**
 * Returns the tag of a record that has a version. The version must be visible ASCII without quotes.
 */
export function versionTag(version: string): string {
  return `"${version}"`;
}

/** Returns the tag of a record without a version, computed from the bytes that are served. */
export function contentTag(bytes: Uint8Array | string): string {
  return `"${createHash('sha256').update(bytes).digest('base64url')}"`;
}

/** Returns the reply with its tag. */
export function tagged<R extends JsonReply | BytesReply>(reply: R, etag: string): R {
  return { ...reply, headers: { ...reply.headers, etag } };
}

/** Returns the reply to a GET with its tag, or 304 when the caller already has this state. */
export function unlessKnown<R extends JsonReply | BytesReply>(
  reply: R,
  etag: string,
  { 'if-none-match': known }: Readonly<Record<keyof typeof READ_CONDITION, string>>,
): R | EmptyReply {
  const current = known === '' ? undefined : currentTagIn(known, etag);
  return current === undefined
    ? tagged(reply, etag)
    : { kind: 'empty', status: 304, headers: { etag: current } };
}

/**
 * Returns the tag of the same state when it is sent with gzip: other bytes need another tag (RFC
 * 9110, 8.8.3.3).
 */
export function compressedTag(etag: string): string {
  return `${etag.slice(0, -1)}-gzip"`;
}

/** Returns whether an `If-None-Match` header names this state. A header that is not a list of tags matches no state. */
export function isKnown(ifNoneMatch: string, etag: string): boolean {
  return currentTagIn(ifNoneMatch, etag) !== undefined;
}

/** Returns the tag in the header that names the state: the tag of the bytes that the caller already has. */
function currentTagIn(ifNoneMatch: string, etag: string): string | undefined {
  if (ifNoneMatch === '') return undefined;
  const tags = parseTags(ifNoneMatch);
  return tags === '*' ? etag : tags?.find((tag) => names(tag, etag))?.opaque;
}

/** Returns whether the tag names the state, with any encoding of the body. */
function names({ opaque }: EntityTag, etag: string): boolean {
  return opaque === etag || opaque === compressedTag(etag);
}

/**
 * Throws `precondition_failed` unless the record is in the state that the headers of a write ask for, and `invalid_request` for a
 * header that is not a list of tags. `tagOf` is called only if there is a condition. It returns the current strong tag, or
 * undefined when there is no such record. `isTaken` returns whether the record's name is in use, even by something without a tag,
 * because `If-None-Match: *` refuses that. Call this function after all checks that do not depend on the body: their refusals
 * take precedence over a condition.
 */
export function requireState(
  headers: Readonly<Record<keyof typeof WRITE_CONDITIONS, string>>,
  tagOf: () => string | undefined,
  isTaken = false,
): void {
  const { 'if-match': wanted, 'if-none-match': unwanted } = headers;
  if (wanted === '' && unwanted === '') return;
  const etag = tagOf();
  if (wanted !== '') {
    const tags = requireTags('if-match', wanted);
    const isCurrent =
      etag !== undefined && (tags === '*' || tags.some((tag) => !tag.isWeak && names(tag, etag)));
    if (!isCurrent) throw preconditionFailed('If-Match names no tag that is current.', etag);
  }
  if (unwanted !== '') {
    const tags = requireTags('if-none-match', unwanted);
    if (tags === '*' && isTaken && etag === undefined)
      throw preconditionFailed('If-None-Match is *, but the path already exists.', etag);
    if (etag !== undefined && isKnown(unwanted, etag))
      throw preconditionFailed('If-None-Match names the current tag.', etag);
  }
}

interface EntityTag {
  readonly isWeak: boolean;
  /** The tag with its quotes. */
  readonly opaque: string;
}

/**
 * One element of the list, which may be empty, and the comma after it. The blanks after a tag belong to the optional group of the
 * tag. Two optional runs of blanks side by side would have quadratic cost, because the expression would try every way to share
 * the blanks.
 */
const ELEMENT = /[ \t]*(?:(W\/)?("[^"\p{Cc} ]*")[ \t]*)?(,|$)/uy;

/** Returns the tags of a header, `*` for any, or undefined when the header is neither. */
function parseTags(header: string): readonly EntityTag[] | '*' | undefined {
  if (header.trim() === '*') return '*';
  const tags: EntityTag[] = [];
  ELEMENT.lastIndex = 0;
  for (;;) {
    const match = ELEMENT.exec(header);
    if (match === null) return undefined;
    const [, weak, opaque, end] = match;
    if (opaque !== undefined) tags.push({ isWeak: weak !== undefined, opaque });
    if (end === '') return tags;
  }
}

function requireTags(name: string, header: string): readonly EntityTag[] | '*' {
  const tags = parseTags(header);
  if (tags !== undefined) return tags;
  const message = 'must be *, or entity tags in quotes with commas between them';
  throw invalidRequest([{ path: `header/${name}`, message }]);
}

function preconditionFailed(detail: string, etag: string | undefined): AppError {
  const headers = etag === undefined ? {} : { etag };
  return new AppError('precondition_failed', `${detail} Read the resource again.`, { headers });
}
