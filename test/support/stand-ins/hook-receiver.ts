/** The receiver of a hook on a real socket: it checks each signature with the package of the Standard Webhooks authors. */
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import { createServer as createTlsServer } from 'node:https';
import type { AddressInfo, Socket } from 'node:net';
import { Webhook } from 'standardwebhooks';
import type { Owner } from '../server-fixture.ts';
import { TEST_CERTIFICATE, TEST_KEY } from './test-certificate.ts';

/** A message that the receiver got. */
export interface Received {
  readonly id: string;
  readonly headers: IncomingMessage['headers'];
  readonly body: string;
  readonly payload: {
    readonly type: string;
    readonly timestamp: string;
    readonly data: Record<string, unknown>;
  };
  /** Throws unless a signature of this secret is valid. */
  verify(secret: string): void;
}

/** How the receiver answers a message. */
type Answer = (response: ServerResponse, received: Received, socket: Socket) => void;

export interface HookReceiver {
  readonly url: string;
  readonly port: number;
  /** The messages so far, repeated ones included. */
  readonly received: readonly Received[];
  /** How many connections are open. */
  readonly open: number;
  /** Changes how the receiver answers from now on. */
  answer(how: Answer): void;
  close(): Promise<void>;
}

export const TAKEN: Answer = (response) => {
  response.writeHead(204).end();
};

/** Starts a receiver, which ends with the owner. */
export async function hookReceiver(
  owner: Owner,
  how: Answer = TAKEN,
  hasTls = false,
  port = 0,
): Promise<HookReceiver> {
  const received: Received[] = [];
  const sockets = new Set<Socket>();
  let answer = how;
  const handle = async (request: IncomingMessage, response: ServerResponse) => {
    const chunks: Buffer[] = [];
    for await (const chunk of request as AsyncIterable<Buffer>) chunks.push(chunk);
    const body = Buffer.concat(chunks).toString('utf8');
    const message = messageOf(request, body);
    received.push(message);
    answer(response, message, request.socket);
  };
  const server = hasTls
    ? createTlsServer({ cert: TEST_CERTIFICATE, key: TEST_KEY }, handle)
    : createServer(handle);
  server.on('connection', (socket: Socket) => {
    sockets.add(socket);
    socket.on('error', () => undefined);
    socket.once('close', () => sockets.delete(socket));
  });
  server.on('tlsClientError', () => undefined);
  await new Promise<void>((done) => server.listen(port, '127.0.0.1', done));
  const close = async () => {
    for (const socket of sockets) socket.destroy();
    await new Promise((done) => server.close(done));
  };
  owner.after(close);
  const { port: bound } = server.address() as AddressInfo;
  return {
    url: `${hasTls ? 'https' : 'http'}://127.0.0.1:${bound}/hook?from=troupe`,
    port: bound,
    received,
    get open() {
      return sockets.size;
    },
    answer(next) {
      answer = next;
    },
    close,
  };
}

function messageOf({ headers }: IncomingMessage, body: string): Received {
  const texts = Object.fromEntries(Object.entries(headers).map(([name, value]) => [name, String(value)]));
  return {
    id: texts['webhook-id'] ?? '',
    headers,
    body,
    payload: JSON.parse(body),
    verify: (secret) => {
      new Webhook(secret).verify(body, texts);
    },
  };
}
