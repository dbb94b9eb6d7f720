/**
 * HTTP for load generators: requests are prepared bytes, and responses are split by their length but not parsed further.
 * A connection costs less than half of the processor time that the server needs to answer on it.
 */
import { connect, type Socket } from 'node:net';

/** A server, and the credentials for it. */
export interface Endpoint {
  readonly port: number;
  readonly token: string;
  readonly workspaceId: string;
}

/** A response. */
export interface Answer {
  readonly status: number;
  readonly body: Buffer;
  /** The time at which its last byte arrived, by `performance.now()`. */
  readonly at: number;
}

/** Returns the bytes of a request. `headers` are whole lines. */
export function requestBytes(
  { token, workspaceId }: Pick<Endpoint, 'token' | 'workspaceId'>,
  method: string,
  path: string,
  body?: unknown,
  headers = '',
): Buffer {
  const text = body === undefined ? '' : JSON.stringify(body);
  const framing =
    body === undefined
      ? ''
      : `content-type: application/json\r\ncontent-length: ${Buffer.byteLength(text)}\r\n`;
  return Buffer.from(
    `${method} ${path} HTTP/1.1\r\nhost: 127.0.0.1\r\nauthorization: Bearer ${token}\r\n` +
      `service-workspace-id: ${workspaceId}\r\n${headers}${framing}\r\n${text}`,
  );
}

/** Returns the bytes of a request to a server that asks for no credentials. `headers` are whole lines. */
export function plainRequest(method: string, path: string, body?: unknown, headers = ''): Buffer {
  const text = body === undefined ? '' : JSON.stringify(body);
  const framing = `content-type: application/json\r\ncontent-length: ${Buffer.byteLength(text)}\r\n`;
  return Buffer.from(
    `${method} ${path} HTTP/1.1\r\nhost: 127.0.0.1\r\n${headers}${method === 'GET' ? '' : framing}\r\n${text}`,
  );
}

/** Splits the bytes of a connection into responses. All have a length, except event streams. */
export class AnswerReader {
  #rest: Buffer | undefined;

  /** Calls `onAnswer` for each response that these bytes complete. The body is valid only during the call. */
  push(chunk: Buffer, onAnswer: (status: number, body: Buffer) => void): void {
    let bytes = this.#rest === undefined ? chunk : Buffer.concat([this.#rest, chunk]);
    this.#rest = undefined;
    while (bytes.length > 0) {
      const head = bytes.indexOf('\r\n\r\n');
      const length = head < 0 ? 0 : lengthOf(bytes, head);
      const end = head + 4 + length;
      if (head < 0 || bytes.length < end) {
        this.#rest = Buffer.from(bytes); // a copy, because the chunk's memory is reused
        return;
      }
      onAnswer(
        (bytes[9]! - 48) * 100 + (bytes[10]! - 48) * 10 + (bytes[11]! - 48),
        bytes.subarray(head + 4, end),
      );
      bytes = bytes.subarray(end);
    }
  }
}

/** The length is searched from the end, because uWebSockets.js writes it last. */
function lengthOf(bytes: Buffer, head: number): number {
  let at = bytes.lastIndexOf('ontent-', head);
  while (at > 0 && (bytes[at + 7]! | 32) !== 0x6c) at = bytes.lastIndexOf('ontent-', at - 1);
  if (at <= 0) return 0;
  let length = 0;
  for (let i = at + 15; bytes[i]! >= 48; i++) length = length * 10 + bytes[i]! - 48;
  return length;
}

/** A keep-alive connection that carries one request at a time. */
export class Wire {
  readonly #socket: Socket;
  readonly #reader = new AnswerReader();
  #waiting: { resolve(answer: Answer): void; reject(error: Error): void } | undefined;

  private constructor(socket: Socket) {
    this.#socket = socket;
    socket.on('data', (chunk) => {
      this.#reader.push(chunk, (status, body) => {
        const waiting = this.#waiting;
        this.#waiting = undefined;
        waiting?.resolve({ status, body: Buffer.from(body), at: performance.now() });
      });
    });
    socket.on('error', () => undefined); // 'close' follows
    socket.on('close', () => this.#waiting?.reject(closed()));
  }

  /** Opens a connection. */
  static open(port: number): Promise<Wire> {
    return new Promise((resolve, reject) => {
      const socket = connect({ port, host: '127.0.0.1', noDelay: true }, () => resolve(new Wire(socket)));
      socket.once('error', reject);
    });
  }

  /** The client's port of the connection. */
  get localPort(): number {
    return this.#socket.localPort ?? 0;
  }

  /** Whether the connection is closed. */
  get isClosed(): boolean {
    return this.#socket.destroyed;
  }

  /** Sends a request and returns its response. Rejects when the connection is closed. */
  send(request: Buffer): Promise<Answer> {
    if (this.isClosed) return Promise.reject(closed());
    return new Promise((resolve, reject) => {
      this.#waiting = { resolve, reject };
      this.#socket.write(request);
    });
  }

  /** Closes the connection. */
  close(): void {
    this.#socket.destroy();
  }
}

/** The server also closes connections that were silent for ten seconds. */
function closed(): Error {
  return new Error('The server has closed the connection.');
}

/** Returns the response if its status is in the range. Throws otherwise. */
export function expected(answer: Answer, from: number, to = from): Answer {
  if (answer.status >= from && answer.status <= to) return answer;
  throw new Error(`Answered ${answer.status}: ${answer.body.toString('utf8').slice(0, 300)}`);
}

/** Returns the parsed body. */
export function decoded<T>(answer: Answer): T {
  return JSON.parse(answer.body.toString('utf8')) as T;
}
