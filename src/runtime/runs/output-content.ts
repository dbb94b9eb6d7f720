/** The bytes of a large output: of the image in a data URL, or of the output's text. */
import { createHash } from 'node:crypto';
import { inSlices, MAX_SIZE_AT_ONCE } from '#src/base/async/slices.ts';
import { joinedJson } from '#src/base/json/json-write.ts';
import { cutText, placeToCut } from '#src/base/text/cut-text.ts';
import { type Blob, encodeBlob } from '#storage/records/blobs.ts';

export interface OutputContent extends Blob {
  /** The text before the base64 bytes when the output is a data URL; null when the bytes are the text of the output. */
  readonly urlStart: string | null;
}

/** A multiple of four, so that base64 can be divided there. */
const STEP_CHARS = 128 * 1024;

/** Only plain base64 can be decoded piece by piece. */
const BASE64 = /^[A-Za-z0-9+/]*$/;
const BASE64_END = /^[A-Za-z0-9+/]*={0,2}$/;

/** Prepared contents of outputs in messages that the receiver has not handled yet, by their texts. */
const arrived = new Map<string, OutputContent>();
/** Prepared contents of received outputs. A content is forgotten with its output at the latest. */
const prepared = new WeakMap<object, OutputContent>();

interface Output {
  readonly data: unknown;
}

/**
 * Makes the content of a large output in steps of up to a millisecond, for the end of its run. Until the result is disposed of,
 * `holdContent` finds the content. For other values, does nothing.
 */
export function* prepareContent(text: unknown): Generator<undefined, Disposable | undefined> {
  if (typeof text !== 'string' || text.length < MAX_SIZE_AT_ONCE) return undefined;
  const content = yield* partsOf(text);
  if (content === undefined) return undefined;
  const { parts, urlStart, sha256 } = content;
  const record = yield* encodeBlob(parts);
  const length = parts.reduce((sum, { byteLength }) => sum + byteLength, 0);
  const bytes = record.subarray(record.byteLength - length);
  arrived.set(text, { bytes, urlStart, sha256, record });
  return { [Symbol.dispose]: () => arrived.delete(text) };
}

/** Resolves with the bytes of an output and their hash. A large output is read in slices, which count as work of its workspace. */
export async function contentOf(
  data: unknown,
  workspaceId: string,
): Promise<{ bytes: Uint8Array; sha256: string }> {
  if (typeof data === 'string') {
    const content = await inSlices(partsOf(data), workspaceId);
    return content === undefined
      ? new OutputContents().of(data)
      : { bytes: Buffer.concat(content.parts), sha256: content.sha256 };
  }
  const bytes = await inSlices(joinedJson(data), workspaceId);
  return { bytes, sha256: createHash('sha256').update(bytes).digest('hex') };
}

interface Parts {
  readonly parts: readonly Buffer[];
  readonly urlStart: string | null;
  readonly sha256: string;
}

/**
 * Returns the bytes of a text, in steps of up to a millisecond; undefined for a data URL that is
 * not plain base64.
 */
function* partsOf(text: string): Generator<undefined, Parts | undefined> {
  const urlStart = urlStartOf(text);
  const hash = createHash('sha256');
  const parts: Buffer[] = [];
  for (let from = urlStart?.length ?? 0; from < text.length; ) {
    const end = placeToCut(text, from + STEP_CHARS);
    const piece = cutText(text, from, end);
    if (urlStart !== null && !(end < text.length ? BASE64 : BASE64_END).test(piece)) return undefined;
    const part = Buffer.from(piece, urlStart === null ? 'utf8' : 'base64');
    hash.update(part);
    parts.push(part);
    from = end;
    yield;
  }
  return { parts, urlStart, sha256: hash.digest('hex') };
}

/** Keeps the prepared content of an output as long as the output is shown, or until it is stored. */
export function holdContent(output: Output): void {
  if (arrived.size === 0 || typeof output.data !== 'string') return;
  const content = arrived.get(output.data);
  if (content !== undefined) prepared.set(output, content);
}

/**
 * Returns the content of an output and remembers it, because an output is stored both with its run
 * and with its cell.
 */
export class OutputContents {
  readonly #known = new Map<string, OutputContent>();

  /** Takes over the prepared content of an output. */
  take(output: Output): void {
    const content = prepared.get(output);
    if (content === undefined) return;
    prepared.delete(output);
    this.#known.set(output.data as string, content);
  }

  /** Returns the content of a text if it is known already. */
  known(text: string): OutputContent | undefined {
    return this.#known.get(text);
  }

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
  const urlStart = urlStartOf(text);
  if (urlStart === null) return undefined;
  return { bytes: Buffer.from(text.slice(urlStart.length), 'base64'), urlStart };
}

/** Returns the text before the bytes in a base64 data URL; null for any other text. */
function urlStartOf(text: string): string | null {
  // The slice is only matched, and cuts no character that is used.
  return /^data:[^,;]*;base64,/.exec(text.slice(0, 200))?.[0] ?? null;
}
