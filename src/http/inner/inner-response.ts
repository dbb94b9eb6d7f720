/**
 * The response to a request that the server makes to itself. It collects the output of the exchange into a web `Response`. A body
 * that is written at once becomes the whole body of the `Response`; otherwise the body is a stream.
 */
import type { RecognizedString } from 'uWebSockets.js';
import type { WireResponse } from '../wire-exchange.ts';

export interface InnerResponseOptions {
  readonly body: Buffer;
  /** The address of the client for whom the request is made. */
  readonly address: string;
  /** Called once: with the response as soon as its head is complete, or with the error that prevents a response. */
  readonly settle: (response: Response | Error) => void;
  /** Called once, after the last write. */
  readonly over: () => void;
}

/** How many unread bytes of a body may be pending before its writer has to wait. */
const WINDOW_BYTES = 256 * 1024;
const NO_BODY: ReadonlySet<number> = new Set([204, 205, 304]);

export class InnerResponse implements WireResponse {
  readonly #options: InnerResponseOptions;
  readonly #headers = new Headers();
  #status = 200;
  /** The writer of a body that comes in pieces. */
  #controller: ReadableStreamDefaultController<Uint8Array> | undefined;
  #writtenBytes = 0;
  /** Whether a write was refused, so that the writer waits. */
  #isFull = false;
  #isOver = false;
  #onWritable: (offset: number) => boolean = () => true;
  #onAborted: () => void = () => {};

  constructor(options: InnerResponseOptions) {
    this.#options = options;
  }

  cork(write: () => void): void {
    write();
  }

  writeStatus(status: string): void {
    this.#status = Number.parseInt(status, 10);
  }

  /** Takes one header, or several: the exchange writes its general headers as further lines of one value. */
  writeHeader(name: string, value: string): void {
    const [first = '', ...lines] = value.split('\r\n');
    this.#headers.append(name, first);
    for (const line of lines) {
      const end = line.indexOf(':');
      this.#headers.append(line.slice(0, end), line.slice(end + 1));
    }
  }

  write(chunk: RecognizedString): boolean {
    if (this.#isOver) return false;
    const bytes = copyOf(chunk);
    this.#writtenBytes += bytes.byteLength;
    const controller = this.#begin();
    controller.enqueue(bytes);
    this.#isFull = (controller.desiredSize ?? 0) <= 0;
    return !this.#isFull;
  }

  tryEnd(chunk: RecognizedString, totalBytes: number): [boolean, boolean] {
    if (this.#isOver) return [true, true];
    const bytes = copyOf(chunk);
    if (this.#writtenBytes + bytes.byteLength >= totalBytes) {
      this.end(bytes);
      return [true, true];
    }
    // All bytes are taken, so the writer never has to write a part again. When the window is full, the writer waits.
    return [this.write(bytes), false];
  }

  getWriteOffset(): number {
    return this.#writtenBytes;
  }

  end(body?: RecognizedString): void {
    if (this.#isOver) return;
    const bytes = body === undefined ? undefined : copyOf(body);
    if (this.#controller === undefined) {
      this.#finish();
      this.#settle(bytes ?? null);
      return;
    }
    if (bytes !== undefined && bytes.byteLength > 0) this.write(bytes);
    this.#finish();
    this.#controller.close();
  }

  endWithoutBody(): void {
    this.end();
  }

  /** Ends the response early, like a connection that closes. */
  close(): void {
    this.#breakOff(new Error('The response was broken off.'));
  }

  /** Ends the exchange as if the client had left. */
  abort(reason: unknown): void {
    this.#breakOff(reason instanceof Error ? reason : new Error('The request was aborted.'));
  }

  onWritable(handler: (offset: number) => boolean): void {
    this.#onWritable = handler;
  }

  onAborted(handler: () => void): void {
    this.#onAborted = handler;
  }

  onData(handler: (chunk: ArrayBuffer, isLast: boolean) => void): void {
    handler(memoryOf(this.#options.body), true);
  }

  pause(): void {}

  resume(): void {}

  getRemoteAddressAsText(): ArrayBuffer {
    return memoryOf(Buffer.from(this.#options.address));
  }

  #finish(): void {
    this.#isOver = true;
    this.#options.over();
  }

  #breakOff(reason: Error): void {
    if (this.#isOver) return;
    this.#finish();
    if (this.#controller === undefined) this.#options.settle(reason);
    else this.#controller.error(reason);
    this.#onAborted();
  }

  /** Returns the writer of the body, after sending the head. */
  #begin(): ReadableStreamDefaultController<Uint8Array> {
    if (this.#controller !== undefined) return this.#controller;
    const body = new ReadableStream<Uint8Array>(
      {
        start: (controller) => {
          this.#controller = controller;
        },
        pull: () => {
          // The writer is called only while it waits, and writes something each time.
          if (!this.#isFull || this.#isOver) return;
          this.#isFull = false;
          this.#onWritable(this.#writtenBytes);
        },
        cancel: () => {
          if (this.#isOver) return;
          this.#finish();
          this.#onAborted();
        },
      },
      { highWaterMark: WINDOW_BYTES, size: (chunk) => chunk?.byteLength ?? 0 },
    );
    this.#settle(body);
    return this.#controller!;
  }

  #settle(body: Uint8Array<ArrayBuffer> | ReadableStream<Uint8Array> | null): void {
    const init = { status: this.#status, headers: this.#headers };
    this.#options.settle(new Response(NO_BODY.has(this.#status) ? null : body, init));
  }
}

/** Returns a copy of the bytes, because the writer may use its memory again. */
function copyOf(chunk: RecognizedString): Uint8Array<ArrayBuffer> {
  if (typeof chunk === 'string') return Buffer.from(chunk);
  if (chunk instanceof ArrayBuffer) return new Uint8Array(chunk.slice(0));
  const copy = new Uint8Array(chunk.byteLength);
  copy.set(new Uint8Array(chunk.buffer, chunk.byteOffset, chunk.byteLength));
  return copy;
}

function memoryOf({ buffer, byteOffset, byteLength }: Buffer): ArrayBuffer {
  return buffer.slice(byteOffset, byteOffset + byteLength) as ArrayBuffer;
}
