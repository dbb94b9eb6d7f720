/**
 * The response to a request that another worker has forwarded. It behaves like a response of uWebSockets.js, but its bytes go to
 * the other worker, which gives credit for more.
 */
import type { RecognizedString } from 'uWebSockets.js';
import type { AnswerChannel, IncomingEvents } from '#src/cluster/peers/forwarding.ts';
import type { Relay } from '#src/runtime/events/event-sink.ts';
import type { WireResponse } from '../wire-exchange.ts';

/** How many bytes may be under way in each direction: of an answer to the other worker, and of a body to this worker. */
export const WINDOW_BYTES = 256 * 1024;

const NOTHING = new Uint8Array(0);

export class PeerResponse implements WireResponse, IncomingEvents {
  readonly relay: Relay;
  readonly #channel: AnswerChannel;
  readonly #address: string;
  readonly #headers: string[] = [];
  readonly #body: Buffer | undefined;
  #status: string | undefined;
  #hasHead = false;
  #isOver = false;
  /**
   * How many bytes of the answer were sent, and how many of them the other worker has not taken
   * yet.
   */
  #sentBytes = 0;
  #untakenBytes = 0;
  /** Whether a write was refused, so that the writer waits. */
  #isFull = false;
  #onWritable: (offset: number) => boolean = () => true;
  #onAborted: () => void = () => {};
  #onData: (chunk: ArrayBuffer, isLast: boolean) => void = () => {};
  #isPaused = false;
  /** Bytes of the body that arrived while the body was paused. */
  #unacknowledgedBytes = 0;

  /** `body` is undefined when the body follows in pieces. */
  constructor(channel: AnswerChannel, address: string, body: Buffer | undefined) {
    this.relay = channel.relay;
    this.#channel = channel;
    this.#address = address;
    this.#body = body;
  }

  cork(write: () => void): void {
    write();
  }

  writeStatus(status: string): void {
    this.#status = status;
  }

  writeHeader(name: string, value: string): void {
    this.#headers.push(name, value);
  }

  write(chunk: RecognizedString): boolean {
    if (this.#isOver) return false;
    const bytes = bytesOf(chunk);
    this.#sendHead(undefined);
    this.#send(bytes);
    this.#isFull = this.#untakenBytes >= WINDOW_BYTES;
    return !this.#isFull;
  }

  tryEnd(chunk: RecognizedString, totalBytes: number): [boolean, boolean] {
    if (this.#isOver) return [true, true];
    this.#sendHead(totalBytes);
    const bytes = bytesOf(chunk);
    const taken = bytes.subarray(0, Math.max(0, WINDOW_BYTES - this.#untakenBytes));
    const isWhole = taken.byteLength === bytes.byteLength;
    if (this.#sentBytes + taken.byteLength < totalBytes) {
      if (taken.byteLength > 0) this.#send(taken);
      this.#isFull = !isWhole;
      return [isWhole, false];
    }
    this.#sentBytes += taken.byteLength;
    this.#isOver = true;
    this.#channel.end(taken);
    return [true, true];
  }

  getWriteOffset(): number {
    return this.#sentBytes;
  }

  end(body: RecognizedString = NOTHING, closeConnection = false): void {
    if (this.#isOver) return;
    this.#isOver = true;
    const bytes = bytesOf(body);
    if (this.#hasHead) this.#channel.end(bytes);
    else this.#channel.whole({ ...this.#head(), ...(closeConnection && { close: true }) }, bytes);
  }

  endWithoutBody(): void {
    if (this.#isOver) return;
    this.#isOver = true;
    this.#channel.whole({ ...this.#head(), isEmpty: true }, NOTHING);
  }

  close(): void {
    if (this.#isOver) return;
    this.#isOver = true;
    this.#channel.cut();
    // The abort handler runs when the response is closed, as in uWebSockets.js.
    this.#onAborted();
  }

  onWritable(handler: (offset: number) => boolean): void {
    this.#onWritable = handler;
  }

  onAborted(handler: () => void): void {
    this.#onAborted = handler;
  }

  onData(handler: (chunk: ArrayBuffer, isLast: boolean) => void): void {
    this.#onData = handler;
    if (this.#body !== undefined) handler(memoryOf(this.#body), true);
    else this.#channel.credit(WINDOW_BYTES);
  }

  pause(): void {
    this.#isPaused = true;
  }

  resume(): void {
    this.#isPaused = false;
    this.#acknowledge();
  }

  getRemoteAddressAsText(): ArrayBuffer {
    return memoryOf(Buffer.from(this.#address, 'latin1'));
  }

  body(bytes: Buffer, isLast: boolean): void {
    this.#unacknowledgedBytes += bytes.byteLength;
    this.#onData(memoryOf(bytes), isLast);
    if (!this.#isPaused) this.#acknowledge();
  }

  credit(bytes: number): void {
    this.#untakenBytes -= bytes;
    if (!this.#isFull || this.#untakenBytes >= WINDOW_BYTES) return;
    this.#isFull = false;
    this.#onWritable(this.#sentBytes);
  }

  aborted(): void {
    if (this.#isOver) return;
    this.#isOver = true;
    this.#onAborted();
  }

  #acknowledge(): void {
    if (this.#unacknowledgedBytes === 0) return;
    this.#channel.credit(this.#unacknowledgedBytes);
    this.#unacknowledgedBytes = 0;
  }

  #sendHead(length: number | undefined): void {
    if (this.#hasHead) return;
    this.#hasHead = true;
    this.#channel.head({ ...this.#head(), ...(length !== undefined && { length }) });
  }

  #head() {
    return { headers: this.#headers, ...(this.#status !== undefined && { status: this.#status }) };
  }

  #send(bytes: Uint8Array): void {
    this.#sentBytes += bytes.byteLength;
    this.#untakenBytes += bytes.byteLength;
    this.#channel.data(bytes);
  }
}

function bytesOf(chunk: RecognizedString): Uint8Array {
  if (typeof chunk === 'string') return Buffer.from(chunk);
  if (chunk instanceof ArrayBuffer) return new Uint8Array(chunk);
  return new Uint8Array(chunk.buffer, chunk.byteOffset, chunk.byteLength);
}

function memoryOf({ buffer, byteOffset, byteLength }: Buffer): ArrayBuffer {
  return buffer.slice(byteOffset, byteOffset + byteLength) as ArrayBuffer;
}
