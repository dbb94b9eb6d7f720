/**
 * A subscriber of a session's events that searches bytes for marks instead of parsing events. A
 * small frame is never split between two HTTP chunks, so its marks are found without decoding. A
 * large frame is split.
 */
import { connect, type Socket } from 'node:net';
import { type Endpoint, requestBytes } from './wire.ts';

interface Wait {
  readonly marks: readonly Buffer[];
  resolve(at: number): void;
  reject(error: Error): void;
}

/** The boundary between two HTTP chunks. Events contain no carriage return. */
const CHUNK_BOUNDARY = /(?:^|\r\n)[0-9a-f]+\r\n/gi;

/** An event of the stream. */
export interface FeedEvent {
  readonly type: string;
  readonly runId?: string;
  readonly data: Readonly<Record<string, unknown>>;
}

/** The subscription to one session. */
export class Feed {
  readonly #socket: Socket;
  #waits: Wait[] = [];
  /** The end of the last chunk, because a mark can be split between two chunks. */
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

  /** Subscribes, and waits for `marks` from the first byte on; `seen` has one promise for each mark. */
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

  /** Resolves with the time (`performance.now()`) at which the next bytes with one of these marks arrived. */
  until(...marks: string[]): Promise<number> {
    const seen = new Promise<number>((resolve, reject) => {
      this.#waits.push({ marks: marks.map((mark) => Buffer.from(mark)), resolve, reject });
    });
    seen.catch(() => undefined); // nobody waits for this promise when a scenario ends early
    return seen;
  }

  /** Stores all further bytes, for `events`. */
  keep(): void {
    this.#kept = [];
  }

  /** The number of stored bytes, including those that HTTP adds. */
  get keptBytes(): number {
    return (this.#kept ?? []).reduce((sum, { length }) => sum + length, 0);
  }

  /** Returns the complete events among the stored bytes. */
  events(): FeedEvent[] {
    const text = Buffer.concat(this.#kept ?? [])
      .toString('utf8')
      .replaceAll(CHUNK_BOUNDARY, '');
    return text
      .split('\n\n')
      .slice(0, -1)
      .flatMap((frame) => {
        const at = frame.indexOf('data: ');
        return at < 0 ? [] : [JSON.parse(frame.slice(at + 6)) as FeedEvent];
      });
  }

  /** Ends the subscription. */
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
    const open = this.#waits.filter(({ marks, resolve }) => {
      if (!marks.some((mark) => bytes.includes(mark))) return true;
      resolve(at);
      return false;
    });
    this.#waits = open;
    const longest = Math.max(1, ...open.flatMap(({ marks }) => marks.map((mark) => mark.length)));
    this.#tail = Buffer.from(bytes.subarray(Math.max(0, bytes.length - longest + 1)));
  }
}

/** Returns the path of a session's events, which depends on the kind of its id. */
export function eventsPath(sessionId: string): string {
  const kind = sessionId.startsWith('conv_') ? 'agent-sessions' : 'notebook-sessions';
  return `/api/v3/${kind}/${sessionId}/events`;
}
