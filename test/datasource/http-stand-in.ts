/** A server that answers HTTP over TLS as a data warehouse would, on a real socket. */
import { createServer as createPlain, type IncomingMessage, type ServerResponse } from 'node:http';
import { createServer } from 'node:https';
import { Readable } from 'node:stream';
import { pipeline } from 'node:stream/promises';
import { TEST_CERTIFICATE, TEST_KEY } from '#test/support/stand-ins/test-certificate.ts';
import { listening, type Owner } from './listening.ts';

/** A request to the stand-in. */
export interface StandInRequest {
  readonly method: string;
  /** Includes the query. */
  readonly path: string;
  readonly headers: IncomingMessage['headers'];
  readonly body: string;
}

/** An answer of the stand-in. */
export interface StandInAnswer {
  readonly status?: number;
  readonly headers?: Readonly<Record<string, string>>;
  /** Text and streams are sent unchanged, anything else as JSON. */
  readonly body: unknown;
}

/** The running stand-in. */
export interface StandIn {
  readonly port: number;
  readonly requests: readonly StandInRequest[];
  /** Cuts all connections, and every answer from now on after its first byte. */
  disconnect(): void;
}

type Answered = StandInAnswer | undefined;
type Answer = (request: StandInRequest, port: number) => Answered | Promise<Answered>;

/** Starts a stand-in, which ends with the owner. A request for which `answer` returns nothing stays open. */
export async function httpStandIn(owner: Owner, answer: Answer, tls = true): Promise<StandIn> {
  const requests: StandInRequest[] = [];
  let isCutting = false;
  const serve = async (incoming: IncomingMessage, response: ServerResponse) => {
    const chunks: Buffer[] = [];
    for await (const chunk of incoming) chunks.push(chunk);
    const { method = '', url = '', headers } = incoming;
    const request = { method, path: url, headers, body: Buffer.concat(chunks).toString() };
    requests.push(request);
    const given = await answer(request, port);
    if (isCutting) {
      response.writeHead(200, { 'content-type': 'application/json' });
      response.write('{', () => response.destroy());
      return;
    }
    if (given === undefined) return;
    response.writeHead(given.status ?? 200, { 'content-type': 'application/json', ...given.headers });
    if (given.body instanceof Readable) {
      await pipeline(given.body, response);
      return;
    }
    response.end(
      typeof given.body === 'string' || given.body instanceof Uint8Array
        ? given.body
        : JSON.stringify(given.body),
    );
  };
  const handle = (incoming: IncomingMessage, response: ServerResponse) => {
    serve(incoming, response).catch(() => response.destroy());
  };
  const server = tls ? createServer({ cert: TEST_CERTIFICATE, key: TEST_KEY }, handle) : createPlain(handle);
  const port = await listening(owner, server);
  const disconnect = () => {
    isCutting = true;
    server.closeAllConnections();
  };
  return { port, requests, disconnect };
}
