/**
 * The writing side of an answer that may take long. While it is not there, the head (status 200) and then white space go
 * out at intervals: JSON may begin with white space, and nobody on the way takes the silence for the end.
 *
 * It owns its timer, which ends with `end` or `stop`. Nothing is written after either.
 */
import type { HttpResponse } from 'uWebSockets.js';
import { writeHead } from './write-reply.ts';

const HEADERS: Readonly<Record<string, string>> = {
  'content-type': 'application/json',
  // or a proxy would keep the white space to itself
  'x-accel-buffering': 'no',
};

export class LateAnswer {
  readonly #res: HttpResponse;
  readonly #requestId: string;
  readonly #timer: NodeJS.Timeout;
  #hasBegun = false;

  /** The abort handler of `res` calls `stop`. */
  constructor(res: HttpResponse, requestId: string, intervalMs: number) {
    this.#res = res;
    this.#requestId = requestId;
    this.#timer = setInterval(() => this.#beat(), intervalMs);
  }

  /** Whether the head is out: the status is 200 then, whatever comes. */
  get hasBegun(): boolean {
    return this.#hasBegun;
  }

  /** Ends an answer that has begun, and with `close` its connection; the caller corks. */
  end(body: Uint8Array | string, close: boolean): void {
    this.stop();
    this.#res.end(body, close);
  }

  stop(): void {
    clearInterval(this.#timer);
  }

  #beat(): void {
    this.#res.cork(() => {
      if (!this.#hasBegun) writeHead(this.#res, 200, this.#requestId, HEADERS);
      this.#hasBegun = true;
      this.#res.write(' ');
    });
  }
}
