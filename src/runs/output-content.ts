/** The bytes of a large output: those of the image that a data URL holds, and otherwise its text. */
import { createHash } from 'node:crypto';
import type { Blob } from '#storage/blobs.ts';

export interface OutputContent extends Blob {
  /** What stands before the bytes in base64 when the output is a data URL; null when the bytes are its text. */
  readonly urlStart: string | null;
}

/** Returns the content of outputs, and remembers what it has returned: an output is stored with its run and with its cell. */
export class OutputContents {
  readonly #known = new Map<string, OutputContent>();

  of(text: string): OutputContent {
    const known = this.#known.get(text);
    if (known !== undefined) return known;
    const { bytes, urlStart } = fromDataUrl(text) ?? { bytes: Buffer.from(text), urlStart: null };
    const content = { bytes, urlStart, sha256: createHash('sha256').update(bytes).digest('hex') };
    this.#known.set(text, content);
    return content;
  }
}

/** Returns the output's text again. */
export function textOf({ bytes, urlStart }: Pick<OutputContent, 'bytes' | 'urlStart'>): string {
  const buffer = Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength);
  return urlStart === null ? buffer.toString('utf8') : urlStart + buffer.toString('base64');
}

/** Returns the bytes of a base64 data URL, so that an image is served as an image; undefined for any other text. */
function fromDataUrl(text: string): Pick<OutputContent, 'bytes' | 'urlStart'> | undefined {
  const match = /^data:[^,;]*;base64,/.exec(text.slice(0, 200));
  if (match === null) return undefined;
  const [urlStart] = match;
  return { bytes: Buffer.from(text.slice(urlStart.length), 'base64'), urlStart };
}
