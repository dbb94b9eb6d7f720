/** The client's side of a WebSocket (RFC 6455) for load generators: whole messages, no extensions, answers to pings. */
import { randomBytes } from 'node:crypto';
import { connect, type Socket } from 'node:net';

const OPCODE = { continuation: 0, text: 1, binary: 2, close: 8, ping: 9, pong: 10 } as const;
const FIN = 0x80;
const MASKED = 0x80;
/** Servers accept any mask. A mask of zeros leaves the payload unchanged, so masking costs nothing. */
const NO_MASK = Buffer.alloc(4);

/** Returns the bytes of the request that opens a WebSocket. `headers` are whole lines. */
export function upgradeBytes(port: number, path: string, headers = ''): Buffer {
  return Buffer.from(
    `GET ${path} HTTP/1.1\r\nhost: 127.0.0.1:${port}\r\nupgrade: websocket\r\nconnection: Upgrade\r\n` +
      `sec-websocket-version: 13\r\nsec-websocket-key: ${randomBytes(16).toString('base64')}\r\n${headers}\r\n`,
  );
}

/** A WebSocket. `onMessage` is called with each message, whose memory is valid only during the call. */
export class WebSocketLine {
  /** Resolves when the connection is closed by either side. */
  readonly closed: Promise<void>;
  readonly #socket: Socket;
  readonly #onMessage: (message: Buffer, at: number) => void;
  #rest = Buffer.alloc(0);
  /** The pieces of a message of several frames. */
  #pieces: Buffer[] = [];

  private constructor(socket: Socket, onMessage: (message: Buffer, at: number) => void) {
    this.#socket = socket;
    this.#onMessage = onMessage;
    this.closed = new Promise((resolve) => socket.once('close', () => resolve()));
    socket.on('error', () => undefined); // 'close' follows
    socket.on('data', (chunk) => this.#take(chunk));
  }

  /** Opens a WebSocket. Rejects when the server refuses the upgrade. */
  static open(
    port: number,
    path: string,
    onMessage: (message: Buffer, at: number) => void,
  ): Promise<WebSocketLine> {
    return new Promise((resolve, reject) => {
      const socket = connect({ port, host: '127.0.0.1', noDelay: true }, () =>
        socket.write(upgradeBytes(port, path)),
      );
      socket.once('error', reject);
      let head = Buffer.alloc(0);
      const answer = (chunk: Buffer) => {
        head = Buffer.concat([head, chunk]);
        const end = head.indexOf('\r\n\r\n');
        if (end < 0) return;
        socket.off('data', answer);
        const [status = ''] = head.toString('latin1').split('\r\n');
        if (!status.includes(' 101 ')) {
          socket.destroy();
          reject(new Error(`The WebSocket was refused: ${status}`));
          return;
        }
        const line = new WebSocketLine(socket, onMessage);
        resolve(line);
        line.#take(head.subarray(end + 4));
      };
      socket.on('data', answer);
    });
  }

  /** Sends a text message. */
  send(text: string): void {
    this.#socket.write(frame(OPCODE.text, Buffer.from(text)));
  }

  /** Closes the connection. */
  close(): void {
    this.#socket.destroy();
  }

  #take(chunk: Buffer): void {
    const at = performance.now();
    let bytes = this.#rest.length === 0 ? chunk : Buffer.concat([this.#rest, chunk]);
    while (bytes.length >= 2) {
      const [start, length] = payloadOf(bytes);
      if (bytes.length < start + length) break;
      this.#frame(bytes[0]!, bytes.subarray(start, start + length), at);
      bytes = bytes.subarray(start + length);
    }
    this.#rest = Buffer.from(bytes);
  }

  #frame(first: number, payload: Buffer, at: number): void {
    const opcode = first & 0x0f;
    if (opcode === OPCODE.ping) this.#socket.write(frame(OPCODE.pong, payload));
    if (opcode === OPCODE.close) this.#socket.end(frame(OPCODE.close, payload));
    if (opcode > OPCODE.binary) return;
    if ((first & FIN) === 0 || opcode === OPCODE.continuation) this.#pieces.push(Buffer.from(payload));
    if ((first & FIN) === 0) return;
    const whole = this.#pieces.length === 0 ? payload : Buffer.concat(this.#pieces);
    this.#pieces = [];
    this.#onMessage(whole, at);
  }
}

/** Returns where the payload of the first frame starts and how long it is; a length that has not arrived is infinite. */
function payloadOf(bytes: Buffer): readonly [start: number, length: number] {
  const short = bytes[1]! & 0x7f;
  if (short < 126) return [2, short];
  if (short === 126) return bytes.length < 4 ? [4, Infinity] : [4, bytes.readUInt16BE(2)];
  return bytes.length < 10 ? [10, Infinity] : [10, Number(bytes.readBigUInt64BE(2))];
}

function frame(opcode: number, payload: Buffer): Buffer {
  const head =
    payload.length < 126
      ? Buffer.from([FIN | opcode, MASKED | payload.length])
      : payload.length < 65_536
        ? Buffer.from([FIN | opcode, MASKED | 126, payload.length >> 8, payload.length & 0xff])
        : Buffer.concat([Buffer.from([FIN | opcode, MASKED | 127]), u64(payload.length)]);
  return Buffer.concat([head, NO_MASK, payload]);
}

function u64(value: number): Buffer {
  const bytes = Buffer.alloc(8);
  bytes.writeBigUInt64BE(BigInt(value));
  return bytes;
}
