import { request as send } from 'node:http';
import { connect } from 'node:net';
import { parsed } from './answer-watch.ts';

/** A token and a workspace. */
export interface Caller {
  readonly token: string;
  readonly workspaceId: string;
}

/** The content of a request. */
export interface RawRequest {
  /** Override the headers of the caller; `undefined` omits a header. */
  readonly headers?: Readonly<Record<string, string | undefined>>;
  /** Text and bytes are sent unchanged, anything else as JSON. */
  readonly body?: unknown;
}

/** A response. */
export interface RawAnswer {
  readonly status: number;
  readonly headers: Readonly<Record<string, string | string[] | undefined>>;
  readonly contentType: string;
  /** Parsed JSON, else text. */
  readonly body: unknown;
  readonly text: string;
}

/** Sends a request that no client would send: any path, any header, any bytes. */
export function sendRaw(
  baseUrl: string,
  method: string,
  path: string,
  caller: Caller,
  { headers = {}, body }: RawRequest,
): Promise<RawAnswer> {
  const all: Record<string, string | undefined> = {
    authorization: `Bearer ${caller.token}`,
    'service-workspace-id': caller.workspaceId,
    ...(body === undefined ? {} : { 'content-type': 'application/json' }),
    ...headers,
  };
  const given = Object.entries(all).filter((entry): entry is [string, string] => entry[1] !== undefined);
  const { hostname, port } = new URL(baseUrl);
  return new Promise((resolve, reject) => {
    const outgoing = send(
      { hostname, port, method, path, headers: Object.fromEntries(given) },
      (incoming) => {
        const chunks: Buffer[] = [];
        incoming.on('data', (chunk: Buffer) => chunks.push(chunk));
        incoming.on('error', reject);
        incoming.on('end', () => {
          const text = Buffer.concat(chunks).toString('utf8');
          const contentType = incoming.headers['content-type'] ?? '';
          const isJson = /^application\/([a-z-]+\+)?json/.test(contentType);
          resolve({
            status: incoming.statusCode ?? 0,
            headers: incoming.headers,
            contentType,
            body: isJson ? parsed(text) : text,
            text,
          });
        });
      },
    );
    outgoing.on('error', reject);
    if (body === undefined) outgoing.end();
    else outgoing.end(typeof body === 'string' || body instanceof Uint8Array ? body : JSON.stringify(body));
  });
}

/** Writes bytes to a new connection. Returns everything that arrives until the server closes it. */
export function sendBytes(baseUrl: string, bytes: string | Uint8Array): Promise<string> {
  const { hostname, port } = new URL(baseUrl);
  return new Promise((resolve, reject) => {
    const socket = connect({ host: hostname, port: Number(port) }, () => socket.end(bytes));
    let text = '';
    socket.on('data', (chunk: Buffer) => {
      text += chunk.toString('latin1');
    });
    socket.on('close', () => resolve(text));
    socket.on('error', reject);
  });
}
