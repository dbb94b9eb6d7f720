/** An event stream as bytes, for the parts that a client hides: frames, comments, and stalled readers. */
import { type IncomingMessage, request } from 'node:http';
import { bounded } from './processes.ts';
import type { TestServer } from './server-fixture.ts';

/** One open stream. */
export class RawStream {
  readonly status: number;
  readonly headers: IncomingMessage['headers'];
  /** Resolves when the server has ended the stream. */
  readonly ended: Promise<void>;
  text = '';
  readonly #incoming: IncomingMessage;
  readonly #waits = new Set<() => void>();

  constructor(incoming: IncomingMessage) {
    this.status = incoming.statusCode ?? 0;
    this.headers = incoming.headers;
    this.#incoming = incoming;
    this.ended = new Promise((resolve) => incoming.once('close', resolve));
    incoming.setEncoding('utf8').on('data', (chunk: string) => {
      this.text += chunk;
      for (const wait of this.#waits) wait();
    });
    incoming.on('error', () => {}); // tests read the text so far
  }

  /** Whether the server has ended the stream in order, and not by closing the connection. */
  get isComplete(): boolean {
    return this.#incoming.complete;
  }

  get lastEventId(): string {
    const ids = this.text.match(/^id: .+$/gm) ?? [];
    return ids.at(-1)?.slice('id: '.length) ?? '';
  }

  /** Resolves when the text contains `part`. */
  until(part: string): Promise<void> {
    return this.untilText((text) => text.includes(part));
  }

  untilText(holds: (text: string) => boolean): Promise<void> {
    const found = new Promise<void>((resolve, reject) => {
      const look = () => {
        if (!holds(this.text)) return;
        this.#waits.delete(look);
        resolve();
      };
      this.#waits.add(look);
      void this.ended.then(() => reject(new Error(`the stream ended after: ${this.text.slice(-500)}`)));
      look();
    });
    return bounded('the text of a stream', found, () => this.text.slice(-2000));
  }

  /** Stops reading until `resume` is called. */
  pause(): void {
    this.#incoming.pause();
  }

  resume(): void {
    this.#incoming.resume();
  }

  close(): void {
    this.#incoming.destroy();
  }
}

/** Opens a stream. Resolves when the response headers have arrived. */
export function openStream(
  { baseUrl, owner }: Pick<TestServer, 'baseUrl' | 'owner'>,
  path: string,
  headers: Readonly<Record<string, string>> = {},
): Promise<RawStream> {
  const all = {
    authorization: `Bearer ${owner.token}`,
    'service-workspace-id': owner.workspaceId,
    ...headers,
  };
  return new Promise((resolve, reject) => {
    request(baseUrl + path, { headers: all, agent: false }, (incoming) => resolve(new RawStream(incoming)))
      .on('error', reject)
      .end();
  });
}
