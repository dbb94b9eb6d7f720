import type { Entry } from '#storage/store.ts';

/** A page as JSON text: `{items, nextCursor}`. Its items are copied as they are stored. */
export type JsonPage = Uint8Array;

/** A page with more bytes ends early; its `nextCursor` then names its last item. */
export const MAX_PAGE_BYTES = 16 * 1024 * 1024;

/** Returns a page of at most `limit` entries. The caller passes one entry more, which shows that another page follows. */
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
    if (count === limit || (count > 0 && size + bytes.byteLength > MAX_PAGE_BYTES)) {
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
