/** A small HTTP client for a server at a unix socket: calls with JSON, and event streams that are searched for texts. */
import { Agent, type ClientRequest, type IncomingMessage, request } from 'node:http';

/** The ids in the answers that the warm-up needs. */
type Answer = Readonly<Record<string, unknown>>;

export class SocketClient implements Disposable {
  readonly #socketPath: string;
  readonly #headers: Readonly<Record<string, string>>;
  readonly #agent = new Agent({ keepAlive: true });
  readonly #streams: ClientRequest[] = [];

  /** `headers` are sent with every request. */
  constructor(socketPath: string, headers: Readonly<Record<string, string>>) {
    this.#socketPath = socketPath;
    this.#headers = headers;
  }

  /** Resolves with the body of the answer. Rejects unless its status is 2xx. */
  async call(method: string, path: string, body?: unknown): Promise<Answer> {
    const text = body === undefined ? '' : JSON.stringify(body);
    const response = await this.#send(method, path, text).response;
    let json = '';
    for await (const chunk of response.setEncoding('utf8')) json += chunk;
    return json === '' ? {} : (JSON.parse(json) as Answer);
  }

  /** Resolves when the stream has begun. */
  async follow(path: string): Promise<FollowedStream> {
    const { sent, response } = this.#send('GET', path, '');
    this.#streams.push(sent);
    return new FollowedStream(await response);
  }

  [Symbol.dispose](): void {
    for (const stream of this.#streams) stream.destroy();
    this.#agent.destroy();
  }

  #send(method: string, path: string, body: string) {
    const framing = { 'content-type': 'application/json', 'content-length': Buffer.byteLength(body) };
    const sent = request({
      method,
      path,
      socketPath: this.#socketPath,
      agent: this.#agent,
      headers: { host: 'localhost', ...this.#headers, ...(body === '' ? {} : framing) },
    });
    const response = new Promise<IncomingMessage>((resolve, reject) => {
      sent.on('error', reject);
      sent.on('response', (received) => {
        const { statusCode = 0 } = received;
        if (statusCode >= 200 && statusCode < 300) resolve(received);
        else reject(new Error(`${method} ${path} was answered with ${statusCode}.`));
      });
    });
    sent.end(body);
    return { sent, response };
  }
}

interface Wait {
  readonly text: string;
  readonly resolve: () => void;
  readonly reject: (error: Error) => void;
}

class FollowedStream {
  #waits: Wait[] = [];

  constructor(response: IncomingMessage) {
    response.setEncoding('utf8').on('data', (chunk: string) => {
      this.#waits = this.#waits.filter(({ text, resolve }) => {
        if (!chunk.includes(text)) return true;
        resolve();
        return false;
      });
    });
    response.on('error', () => undefined); // 'close' follows
    response.on('close', () => {
      for (const { reject } of this.#waits.splice(0)) reject(new Error('The stream has ended.'));
    });
  }

  /** Resolves when the text arrives. Rejects when the stream ends before. */
  until(text: string): Promise<void> {
    const arrived = new Promise<void>((resolve, reject) => {
      this.#waits.push({ text, resolve, reject });
    });
    arrived.catch(() => undefined); // nobody waits for this promise when the request fails
    return arrived;
  }
}
