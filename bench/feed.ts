/**
 * One subscriber of a session's events that looks at bytes, not at events: it waits for marks. The server writes whole
 * frames and JSON holds no line feed, so where HTTP's chunks begin and end does not matter.
 */
import { connect, type Socket } from 'node:net';
import { type Endpoint, requestBytes } from './wire.ts';

interface Wait {
  readonly mark: Buffer;
  resolve(at: number): void;
  reject(error: Error): void;
}

export interface FeedEvent {
  readonly type: string;
  readonly runId?: string;
  readonly data: Readonly<Record<string, unknown>>;
}

export class Feed {
  readonly #socket: Socket;
  #waits: Wait[] = [];
  /** The end of the last chunk: a mark may lie across two. */
  #tail = Buffer.alloc(0);
  #kept: Buffer[] | undefined;

  private constructor(socket: Socket) {
    this.#socket = socket;
    socket.on('data', (chunk) => this.#take(chunk));
    socket.on('error', () => undefined); // 'close' follows
    socket.on('close', () => {
      for (const { reject } of this.#waits.splice(0)) reject(new Error('The event stream has ended.'));
    });
  }

  /** Subscribes; the first bytes may be marks already waited for. */
  static async open(
    endpoint: Endpoint,
    sessionId: string,
    ...marks: string[]
  ): Promise<{ feed: Feed; seen: Promise<number>[] }> {
    const request = requestBytes(endpoint, 'GET', eventsPath(sessionId));
    const socket = await new Promise<Socket>((resolve, reject) => {
      const opened = connect({ port: endpoint.port, host: '127.0.0.1', noDelay: true }, () =>
        resolve(opened),
      );
      opened.once('error', reject);
    });
    const feed = new Feed(socket);
    const seen = marks.map((mark) => feed.until(mark));
    socket.write(request);
    return { feed, seen };
  }

  /** When the next bytes with this mark came. */
  until(mark: string): Promise<number> {
    const seen = new Promise<number>((resolve, reject) => {
      this.#waits.push({ mark: Buffer.from(mark), resolve, reject });
    });
    seen.catch(() => undefined); // a scenario that ends early waits for it no more
    return seen;
  }

  /** From here on the bytes are kept, for `events`. */
  keep(): void {
    this.#kept = [];
  }

  /** The whole events among the bytes that were kept. */
  events(): FeedEvent[] {
    const text = Buffer.concat(this.#kept ?? []).toString('utf8');
    return text
      .split('\n\n')
      .slice(0, -1)
      .flatMap((frame) => {
        const at = frame.indexOf('data: ');
        return at < 0 ? [] : [JSON.parse(frame.slice(at + 6)) as FeedEvent];
      });
  }

  close(): void {
    this.#socket.destroy();
  }

  #take(chunk: Buffer): void {
    this.#kept?.push(chunk);
    if (this.#waits.length === 0) {
      this.#tail = Buffer.alloc(0);
      return;
    }
    const at = performance.now();
    const bytes = this.#tail.length === 0 ? chunk : Buffer.concat([this.#tail, chunk]);
    const open = this.#waits.filter(({ mark, resolve }) => {
      if (!bytes.includes(mark)) return true;
      resolve(at);
      return false;
    });
    this.#waits = open;
    const longest = open.reduce((most, { mark }) => Math.max(most, mark.length), 1);
    this.#tail = Buffer.from(bytes.subarray(Math.max(0, bytes.length - longest + 1)));
  }
}

/** Where a session's events are; conversations without a notebook have ids of their own kind. */
export function eventsPath(sessionId: string): string {
  const kind = sessionId.startsWith('conv_') ? 'agent-sessions' : 'notebook-sessions';
  return `/api/v3/${kind}/${sessionId}/events`;
}
