/** A server that answers the Python client from a script, for failures and for members that no real server sends yet. */
import { once } from 'node:events';
import { createServer, type IncomingHttpHeaders, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import type { Owner } from '#test/support/server-fixture.ts';

/** One request that the client has sent. */
export interface ReceivedRequest {
  readonly method: string;
  readonly url: string;
  readonly headers: IncomingHttpHeaders;
  readonly body: Readonly<Record<string, unknown>>;
}

export interface ScriptedServer {
  readonly baseUrl: string;
  readonly requests: readonly ReceivedRequest[];
}

/** Starts a server that ends with the owner. `attempt` counts the requests with the same method, URL and body, from 1. */
export async function startScriptedServer(
  owner: Owner,
  respond: (request: ReceivedRequest, response: ServerResponse, attempt: number) => void,
): Promise<ScriptedServer> {
  const requests: ReceivedRequest[] = [];
  const server = createServer(async (incoming, response) => {
    const parts: Buffer[] = [];
    for await (const part of incoming) parts.push(part);
    const text = Buffer.concat(parts).toString();
    const { method = '', url = '', headers } = incoming;
    const request = { method, url, headers, body: text === '' ? {} : JSON.parse(text) };
    requests.push(request);
    const same = requests.filter(
      (other) =>
        other.method === method &&
        other.url === url &&
        JSON.stringify(other.body) === JSON.stringify(request.body),
    );
    respond(request, response, same.length);
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  owner.after(async () => {
    server.closeAllConnections();
    server.close();
  });
  return { baseUrl: `http://127.0.0.1:${(server.address() as AddressInfo).port}`, requests };
}

/** Sends JSON. */
export function sendJson(response: ServerResponse, status: number, body: unknown, headers = {}): void {
  response.writeHead(status, { 'content-type': 'application/json', ...headers });
  response.end(JSON.stringify(body));
}
