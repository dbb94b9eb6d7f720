/** Media types whose values are text. */
const TEXT = /^text\/|json$|\+xml$|^application\/vnd\.marimo/;

/** Returns the value of an output from the bytes of its asset: text, or a data URL. */
export function valueOfAsset(mimetype: string, bytes: Uint8Array): string {
  const buffer = Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength);
  return TEXT.test(mimetype)
    ? buffer.toString('utf8')
    : `data:${mimetype};base64,${buffer.toString('base64')}`;
}
