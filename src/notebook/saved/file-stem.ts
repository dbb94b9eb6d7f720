const LIMIT_BYTES = 120;

/**
 * Returns a file name without its ending that shows `title` and is valid on any system; undefined
 * when no part of the title can be used.
 */
export function fileStem(title: string | null): string | undefined {
  const plain = (title ?? '')
    .normalize('NFC')
    .replace(/[\p{C}\p{Zl}\p{Zp}\p{Surrogate}]/gu, ' ')
    .replace(/[<>:"/\\|?*]/g, '_')
    .replace(/\s+/g, ' ')
    .replace(/^[\s.]+/, '');
  const stem = cut(plain).replace(/(?<![\s.])[\s.]+$/, '');
  if (/^_*$/.test(stem)) return undefined;
  return /^(con|prn|aux|nul|com\d|lpt\d)$/i.test(stem) ? `${stem}_` : stem;
}

/** Returns the beginning of a text, limited in bytes, because file systems count bytes. */
function cut(text: string): string {
  let end = 0;
  let bytes = 0;
  for (const character of text) {
    bytes += Buffer.byteLength(character);
    if (bytes > LIMIT_BYTES) break;
    end += character.length;
  }
  return text.slice(0, end);
}
