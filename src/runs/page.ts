import type { Entry } from '#storage/store.ts';

/** A page as JSON text: `{items, nextCursor}`, made of records that are stored as they are served. */
export type JsonPage = Uint8Array;

/** A page ends early rather than grow beyond this; its `nextCursor` says where it goes on. */
export const PAGE_LIMIT_BYTES = 16 * 1024 * 1024;

/** Makes a page of the first `limit` entries; one more among `entries` is the sign that there are others. */
export function pageOf<T>(
  entries: Iterable<Entry<T>>,
  limit: number,
  bytesOf: (value: T, id: string) => Uint8Array,
): JsonPage {
  const chunks: Uint8Array[] = [Buffer.from('{"items":[')];
  let count = 0;
  let size = 0;
  let last: string | null = null;
  let more = false;
  for (const { id, value } of entries) {
    const bytes = bytesOf(value, id);
    if (count === limit || (count > 0 && size + bytes.byteLength > PAGE_LIMIT_BYTES)) {
      more = true;
      break;
    }
    if (count > 0) chunks.push(COMMA);
    chunks.push(bytes);
    size += bytes.byteLength;
    count++;
    last = id;
  }
  chunks.push(Buffer.from(`],"nextCursor":${JSON.stringify(more ? last : null)}}`));
  return Buffer.concat(chunks);
}

const COMMA = Buffer.from(',');
