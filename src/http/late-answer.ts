/**
 * The writing side of an answer that may take long. While it is not there, the head (status 200) and then white space go
 * out at intervals: JSON may begin with white space, and nobody on the way takes the silence for the end.
 *
 * It owns its timer, which ends with `end` or `stop`. Nothing is written after either.
 */
import type { HttpResponse } from 'uWebSockets.js';
import type { AppError } from '#src/core/errors.ts';
import type { Principal } from '#src/core/principal.ts';
import { writeHead } from './write-reply.ts';

/** A request whose answer is late: its caller may lose the right to it before it comes. */
export interface PendingAnswer {
  readonly caller: Principal | undefined;
  /** What the caller does by it. */
  readonly action: string | undefined;
  /** Answers with `error` at once, and aborts the work as if the client had left. */
  revoke(error: AppError): void;
}

const HEADERS: Readonly<Record<string, string>> = {
  'content-type': 'application/json',
  // or a proxy would keep the white space to itself
  'x-accel-buffering': 'no',
};

export class LateAnswer {
  readonly #res: HttpResponse;
  readonly #requestId: string;
  readonly #timer: NodeJS.Timeout | undefined;
  #hasBegun = false;

  /**
   * The abort handler of `res` calls `stop`. Nothing shows that the answer will come when its connection has to end with
   * it: uWebSockets.js 20 would write the header that says so into the body.
   */
  constructor(res: HttpResponse, requestId: string, intervalMs: number, closeAfter: boolean) {
    this.#res = res;
    this.#requestId = requestId;
    if (!closeAfter) this.#timer = setInterval(() => this.#beat(), intervalMs);
  }

  /** Whether the head is out: the status is 200 then, whatever comes. */
  get hasBegun(): boolean {
    return this.#hasBegun;
  }

  /** Ends an answer that has begun; the caller corks. */
  end(body: Uint8Array | string): void {
    this.stop();
    this.#res.end(body);
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
