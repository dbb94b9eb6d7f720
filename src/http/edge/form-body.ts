/** Bodies of the type `multipart/form-data` (RFC 7578): short fields, and then at most one file, which is read as it arrives. */
import { AppError } from '#src/base/errors/errors.ts';

export interface FormBody {
  /** The fields before the file. */
  readonly fields: ReadonlyMap<string, string>;
  /** The content of the file, which can be read once; undefined without a file. Fields after it are not read. */
  readonly file: AsyncIterable<Uint8Array> | undefined;
}

const MAX_FIELDS = 10;
const MAX_FIELD_BYTES = 4096;
const MAX_HEAD_BYTES = 4096;
const LINE_END = Buffer.from('\r\n');
const HEAD_END = Buffer.from('\r\n\r\n');

/** Resolves once the fields are read. Rejects with `unsupported_media_type`, and with `invalid_request` for a broken form. */
export async function readForm(content: AsyncIterable<Uint8Array>, contentType: string): Promise<FormBody> {
  const [, quoted, plain] =
    /^multipart\/form-data\s*;.*\bboundary=(?:"([^"]{1,70})"|([^\s;"]{1,70}))/i.exec(contentType) ?? [];
  const boundary = quoted ?? plain;
  if (boundary === undefined)
    throw new AppError('unsupported_media_type', 'The body must be multipart/form-data with a boundary.');
  const mark = Buffer.from(`\r\n--${boundary}`);
  const body = new MarkedBytes(content);
  const fields = new Map<string, string>();
  await body.before(mark.subarray(LINE_END.byteLength), 0); // the form begins with its first boundary
  for (let count = 0; ; count++) {
    const rest = (await body.before(LINE_END, MAX_HEAD_BYTES)).toString('latin1');
    if (rest.trim() === '--') return { fields, file: undefined };
    if (rest.trim() !== '' || count === MAX_FIELDS) throw broken();
    const head = (await body.before(HEAD_END, MAX_HEAD_BYTES)).toString();
    const disposition = /^content-disposition:\s*form-data(;.*)$/im.exec(head)?.[1] ?? '';
    const name = /;\s*name="([^"]*)"/i.exec(disposition)?.[1];
    if (name === undefined) throw broken();
    if (/;\s*filename\*?=/i.test(disposition)) return { fields, file: body.piecesBefore(mark) };
    fields.set(name, (await body.before(mark, MAX_FIELD_BYTES)).toString());
  }
}

function broken(): AppError {
  return new AppError('invalid_request', 'The body is not a complete form.');
}

/** Bytes that arrive in pieces and are read up to marks in them. */
class MarkedBytes {
  readonly #pieces: AsyncIterator<Uint8Array>;
  #held: Buffer = Buffer.alloc(0);

  constructor(content: AsyncIterable<Uint8Array>) {
    this.#pieces = content[Symbol.asyncIterator]();
  }

  /** Resolves with the bytes before the mark, at most `maxBytes` of them, and passes over the mark. */
  async before(mark: Buffer, maxBytes: number): Promise<Buffer> {
    for (;;) {
      const at = this.#held.indexOf(mark);
      if (at > maxBytes || (at === -1 && this.#held.byteLength >= maxBytes + mark.byteLength)) throw broken();
      if (at !== -1) return this.#take(at, mark.byteLength);
      await this.#more();
    }
  }

  /** Yields the bytes before the mark. */
  async *piecesBefore(mark: Buffer): AsyncGenerator<Uint8Array> {
    for (;;) {
      const at = this.#held.indexOf(mark);
      if (at !== -1) {
        yield this.#take(at, mark.byteLength);
        return;
      }
      const certain = this.#held.byteLength - mark.byteLength; // a mark may have begun behind these
      if (certain > 0) yield this.#take(certain, 0);
      await this.#more();
    }
  }

  /** Returns the next bytes, and passes over some behind them. */
  #take(length: number, passed: number): Buffer {
    const taken = this.#held.subarray(0, length);
    this.#held = this.#held.subarray(length + passed);
    return taken;
  }

  async #more(): Promise<void> {
    const { done, value } = await this.#pieces.next();
    if (done === true) throw broken();
    this.#held = Buffer.concat([this.#held, value]);
  }
}
