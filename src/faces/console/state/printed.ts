/**
 * The text that a cell has printed since the view was opened. Only its end is kept, because the
 * newest text of a running cell matters most.
 */
import { endOfText } from '#src/base/text/cut-text.ts';
import type { Output } from '#src/contract/wire/output.ts';

const MAX_ENTRIES = 500;
/** The most characters that are kept of one text. The server keeps as many. */
const MAX_TEXT_CHARS = 64 * 1024;
/** The most characters of all entries together. Figures may be large. */
const MAX_CHARS = 16 * 2 ** 20;

/** Returns the earlier text with the new text added. Consecutive texts of one channel become one. */
export function withPrinted(before: readonly Output[], more: readonly Output[]): readonly Output[] {
  const entries = [...before];
  for (const entry of more) {
    const last = entries.at(-1);
    const isMore = last !== undefined && last.channel === entry.channel && isText(last) && isText(entry);
    if (isMore) entries.pop();
    const text = isText(entry) ? (isMore ? last.data + entry.data : entry.data) : undefined;
    entries.push(text === undefined ? entry : { ...entry, data: endOfText(text, MAX_TEXT_CHARS) });
  }
  return lastOf(entries);
}

/** Returns the last entries that fit within the limits, at least one entry. */
function lastOf(entries: readonly Output[]): readonly Output[] {
  let chars = 0;
  let first = entries.length;
  while (first > 0 && entries.length - first < MAX_ENTRIES) {
    chars += charsOf(entries[first - 1]!);
    if (chars > MAX_CHARS && first < entries.length) break;
    first--;
  }
  return entries.slice(first);
}

function isText(entry: Output): entry is Output & { readonly data: string } {
  return entry.mimetype === 'text/plain' && typeof entry.data === 'string';
}

function charsOf({ data }: Output): number {
  return typeof data === 'string' ? data.length : (JSON.stringify(data)?.length ?? 0);
}
