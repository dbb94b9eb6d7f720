/**
 * Splits the bytes of a PostgreSQL server into messages. Rows go to a sink as bytes, everything else to the driver, which
 * would create an object for every value and buffer a message of any size.
 */

/** Receives `count` whole `DataRow` messages, one after another. */
export type RowSink = (messages: Buffer, count: number) => void;

/** The receiver of messages, and their limit. */
export interface MessageOptions {
  /** Receives whole messages in order, except rows that a sink takes. */
  readonly forward: (messages: Buffer) => void;
  /** Most bytes of one message. */
  readonly limitBytes: number;
  /** Called when a message is refused. No message is forwarded after that. */
  readonly refuse: (why: PostgresRefusal) => void;
}

/**
 * The reason for refusing a message: it is too large; it begins a COPY, for which the driver's
 * cursor has no methods; or the driver cannot parse it or does not expect it.
 */
export type PostgresRefusal = 'too_large' | 'copy' | 'malformed';

/** A message starts with a letter and a length, which has four bytes. The length does not include the letter. */
export const MESSAGE_HEAD_BYTES = 5;
const DATA_ROW = 0x44;
/** `CopyInResponse`, `CopyOutResponse` and `CopyBothResponse`, with which the server begins a COPY. */
const COPY_RESPONSES: ReadonlySet<number | undefined> = new Set([0x47, 0x48, 0x57]);

/** `ErrorResponse` and `NoticeResponse`. */
const REPORTS: ReadonlySet<number | undefined> = new Set([0x45, 0x4e]);

/** The splitter of one connection. It buffers at most one incomplete message. */
export class PostgresMessages {
  readonly #options: MessageOptions;
  /** Receives rows while it is set; otherwise they go to the driver. */
  sink: RowSink | undefined;
  #held: Buffer[] = [];
  #heldBytes = 0;
  #wantedBytes = 0;
  #refused = false;

  constructor(options: MessageOptions) {
    this.#options = options;
  }

  /** Takes bytes of the socket. */
  push(chunk: Buffer): void {
    if (this.#refused) return;
    this.#held.push(chunk);
    this.#heldBytes += chunk.length;
    if (this.#heldBytes < this.#wantedBytes) return;
    const bytes = this.#held.length === 1 ? chunk : Buffer.concat(this.#held, this.#heldBytes);
    try {
      this.#hold(bytes.subarray(this.#giveOut(bytes)));
    } catch {
      // The driver throws when a message is too short or unexpected. Without this the error would
      // leave the socket's event handler and end the process.
      this.#refused = true;
      this.#options.refuse('malformed');
    }
  }

  /** Passes on every whole message. Returns where the first incomplete one begins. */
  #giveOut(bytes: Buffer): number {
    let at = 0;
    let run = 0; // start of the messages that go to the same receiver
    let rows = 0; // how many of them are rows
    const flush = () => {
      if (at === run) return;
      const messages = bytes.subarray(run, at);
      if (rows > 0) this.sink?.(messages, rows);
      else this.#options.forward(messages);
      run = at;
      rows = 0;
    };
    const refuse = (why: PostgresRefusal) => {
      flush();
      this.#refused = true;
      this.#options.refuse(why);
      return bytes.length;
    };
    while (bytes.length - at >= MESSAGE_HEAD_BYTES) {
      const size = 1 + bytes.readUInt32BE(at + 1);
      if (size < MESSAGE_HEAD_BYTES) return refuse('malformed');
      if (size > this.#options.limitBytes) return refuse('too_large');
      if (COPY_RESPONSES.has(bytes[at])) return refuse('copy');
      if (bytes.length - at < size) break;
      const isCutReport =
        REPORTS.has(bytes[at]) && !isWholeReport(bytes.subarray(at + MESSAGE_HEAD_BYTES, at + size));
      if (isCutReport) return refuse('malformed');
      const isRow = bytes[at] === DATA_ROW && this.sink !== undefined;
      if (isRow !== rows > 0) flush();
      if (isRow) rows++;
      at += size;
    }
    flush();
    return at;
  }

  #hold(rest: Buffer): void {
    this.#held = rest.length === 0 ? [] : [rest];
    this.#heldBytes = rest.length;
    this.#wantedBytes = rest.length < MESSAGE_HEAD_BYTES ? MESSAGE_HEAD_BYTES : 1 + rest.readUInt32BE(1);
  }
}

/**
 * Returns whether the body of an error or a notice is whole. It consists of fields, each a letter and a
 * zero-terminated text, and one more zero byte. The driver looks for that last byte even beyond the end of the
 * message. If the byte were missing, the search would never stop.
 */
function isWholeReport(body: Buffer): boolean {
  let at = 0;
  while (at < body.length && body[at] !== 0) {
    const end = body.indexOf(0, at + 1);
    if (end === -1) return false;
    at = end + 1;
  }
  return at < body.length;
}
