/**
 * Sends requests from another thread, so that the event loop of this one does only the server's
 * work.
 */
import { once } from 'node:events';
import { parentPort, Worker } from 'node:worker_threads';

export interface ThreadRequest {
  readonly method: string;
  readonly url: string;
  readonly headers: Readonly<Record<string, string>>;
  /** The body, which must be the whole of its buffer. */
  readonly body?: Uint8Array;
  /** For a stream: the text until which it is read; the client then leaves. */
  readonly until?: string | undefined;
}

export interface ThreadAnswer {
  readonly status: number;
  readonly bytes: number;
  /** The body of an answer that is short. */
  readonly text: string;
}

const MAX_TEXT_BYTES = 64 * 1024;

export class RequestThread implements AsyncDisposable {
  readonly #worker = new Worker(new URL(import.meta.url));

  /**
   * Resolves once the whole answer was read. Only one request at a time is possible. The body moves
   * to the other thread, so here it is empty afterwards.
   */
  async send(request: ThreadRequest): Promise<ThreadAnswer> {
    const { body } = request;
    const answer = once(this.#worker, 'message') as Promise<[ThreadAnswer]>;
    this.#worker.postMessage(request, body === undefined ? [] : [body.buffer as ArrayBuffer]);
    return (await answer)[0];
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#worker.terminate();
  }
}

parentPort?.on('message', async ({ url, body, until, ...request }: ThreadRequest) => {
  const response = await fetch(url, { ...request, ...(body === undefined ? {} : { body }) });
  const bytes = await read(response, until);
  const text = bytes.length > MAX_TEXT_BYTES ? '' : bytes.toString('utf8');
  parentPort?.postMessage({ status: response.status, bytes: bytes.length, text } satisfies ThreadAnswer);
});

async function read(response: Response, until: string | undefined): Promise<Buffer> {
  if (until === undefined || response.body === null) return Buffer.from(await response.arrayBuffer());
  const chunks: Uint8Array[] = [];
  for await (const chunk of response.body) {
    chunks.push(chunk);
    if (Buffer.concat(chunks.slice(-2)).includes(until)) break; // which cancels the request
  }
  return Buffer.concat(chunks);
}
