/**
 * The messages of a PostgreSQL server, cut out of its bytes: rows go where somebody wants them as bytes, everything else
 * goes on to the driver, which would make an object of every value and gather a message of any size.
 */

/** Takes whole `DataRow` messages, several behind each other. */
export type RowSink = (messages: Buffer, count: number) => void;

export interface MessageOptions {
  /** Whole messages, in order, but for the rows that a sink takes. */
  readonly forward: (messages: Buffer) => void;
  /** Most bytes of one message. */
  readonly limitBytes: number;
  /** A message is larger, or is none. Nothing is given out any more. */
  readonly refuse: () => void;
}

/** A letter, and the length of all but the letter. */
export const HEAD_BYTES = 5;
const DATA_ROW = 0x44;

export class PostgresMessages {
  readonly #options: MessageOptions;
  /** Takes rows while it is set; without it they go to the driver. */
  sink: RowSink | undefined;
  #held: Buffer[] = [];
  #heldBytes = 0;
  #wantedBytes = 0;
  #refused = false;

  constructor(options: MessageOptions) {
    this.#options = options;
  }

  push(chunk: Buffer): void {
    if (this.#refused) return;
    this.#held.push(chunk);
    this.#heldBytes += chunk.length;
    if (this.#heldBytes < this.#wantedBytes) return;
    const bytes = this.#held.length === 1 ? chunk : Buffer.concat(this.#held, this.#heldBytes);
    this.#hold(bytes.subarray(this.#giveOut(bytes)));
  }

  /** Gives out every message that is whole; answers where the first one that is not begins. */
  #giveOut(bytes: Buffer): number {
    let at = 0;
    let run = 0; // where the messages begin that go the same way
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
