/** An event stream as the server writes it: each write is a chunk of HTTP's chunked coding. */
import { once } from 'node:events';
import { connect, type Socket } from 'node:net';
import { OWNER, type TestServer } from './server-fixture.ts';

const HEARTBEAT = ':\n';

export class StreamWrites {
  readonly #socket: Socket;
  #received = '';
  readonly #writes: string[] = [];

  private constructor(socket: Socket) {
    this.#socket = socket;
    socket.setEncoding('latin1').on('data', (text: string) => {
      this.#received += text;
      this.#takeChunks();
    });
  }

  /** Opens a stream. Resolves when its headers have been asked for. */
  static async open({ baseUrl }: Pick<TestServer, 'baseUrl'>, path: string): Promise<StreamWrites> {
    const { hostname, port } = new URL(baseUrl);
    const socket = connect({ host: hostname, port: Number(port) });
    await once(socket, 'connect');
    const stream = new StreamWrites(socket);
    const { token, workspaceId } = OWNER;
    const head = [`GET ${path} HTTP/1.1`, 'host: localhost', `authorization: Bearer ${token}`];
    socket.write([...head, `service-workspace-id: ${workspaceId}`, '', ''].join('\r\n'));
    return stream;
  }

  /** The server's output so far, without heartbeats. */
  get writes(): readonly string[] {
    return this.#writes;
  }

  /** Resolves when a write after the first `from` writes contains `part`. */
  async until(part: string, from = 0): Promise<void> {
    while (!this.#writes.slice(from).some((write) => write.includes(part))) await once(this.#socket, 'data');
  }

  close(): void {
    this.#socket.destroy();
  }

  #takeChunks(): void {
    for (;;) {
      // The line end after a chunk comes with the next one.
      const found = /^(?:HTTP[\s\S]*?\r\n)?\r\n([0-9a-f]+)\r\n/i.exec(this.#received);
      if (found === null) return;
      const [head, size = ''] = found;
      const end = head.length + Number.parseInt(size, 16);
      if (this.#received.length < end) return;
      const write = this.#received.slice(head.length, end);
      this.#received = this.#received.slice(end);
      if (write !== HEARTBEAT) this.#writes.push(write);
    }
  }
}
