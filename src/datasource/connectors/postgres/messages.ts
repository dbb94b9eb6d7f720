/**
 * Splits the bytes of a PostgreSQL server into messages. Rows go to a sink as bytes, everything else to the driver, which
 * would create an object for every value and buffer a message of any size.
 */

/** Receives `count` whole `DataRow` messages, one after another. */
export type RowSink = (messages: Buffer, count: number) => void;

/** Where messages go. */
export interface MessageOptions {
  /** Receives whole messages in order, except rows that a sink takes. */
  readonly forward: (messages: Buffer) => void;
  /** Most bytes of one message. */
  readonly limitBytes: number;
  /** Called when a message is too large or malformed. No message is forwarded after that. */
  readonly refuse: () => void;
}

/** A message starts with a letter and a length of four bytes, which does not count the letter. */
export const HEAD_BYTES = 5;
const DATA_ROW = 0x44;

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
    this.#hold(bytes.subarray(this.#giveOut(bytes)));
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
    while (bytes.length - at >= HEAD_BYTES) {
      const size = 1 + bytes.readUInt32BE(at + 1);
      if (size < HEAD_BYTES || size > this.#options.limitBytes) {
        flush();
        this.#refused = true;
        this.#options.refuse();
        return bytes.length;
      }
      if (bytes.length - at < size) break;
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
    this.#wantedBytes = rest.length < HEAD_BYTES ? HEAD_BYTES : 1 + rest.readUInt32BE(1);
  }
}
