/** An HTTP proxy that answers some requests itself, as overloaded servers, proxies and networks do. */
import { once } from 'node:events';
import { createServer, type IncomingMessage, request, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import type { Owner } from './server-fixture.ts';

/** An answer in place of that of the server. */
export type Refusal =
  | { readonly status: number; readonly headers?: Readonly<Record<string, string>> }
  /** The connection is reset: before the head of the answer, or in the middle of its body. */
  | { readonly cut: 'before' | 'within' };

export interface RefusingProxy {
  readonly baseUrl: string;
  /** Refusals that are yet to come, by the method of the requests that get them. */
  readonly refusals: { readonly POST: Refusal[]; readonly GET: Refusal[] };
  /** Resets every connection whose request was passed on. */
  cut(): void;
}

/** Starts a proxy to `target`, which ends with the owner. `page` is sent for `/page`. */
export async function startRefusingProxy(owner: Owner, target: string, page = ''): Promise<RefusingProxy> {
  const refusals: RefusingProxy['refusals'] = { POST: [], GET: [] };
  const open = new Set<ServerResponse>();
  const server = createServer((incoming, response) => {
    if (incoming.url === '/page') {
      response.setHeader('content-type', 'text/html').end(page);
      return;
    }
    const isCall = incoming.url?.startsWith('/api/') === true; // a browser asks for its icon as well
    const refusal = isCall ? refusals[incoming.method === 'POST' ? 'POST' : 'GET'].shift() : undefined;
    if (refusal === undefined) passOn(incoming, response);
    else if ('status' in refusal) response.writeHead(refusal.status, refusal.headers).end();
    else if (refusal.cut === 'before') incoming.socket.resetAndDestroy();
    else {
      response.writeHead(201, { 'content-type': 'application/json', 'content-length': 100 });
      response.write('{"ticket":', () => incoming.socket.resetAndDestroy());
    }
  });
  const passOn = (incoming: IncomingMessage, response: ServerResponse) => {
    open.add(response);
    const { method = 'GET', url = '/', headers } = incoming;
    const outgoing = request(new URL(url, target), { method, headers }, (answer) => {
      response.writeHead(answer.statusCode ?? 502, answer.headers);
      answer.on('error', () => response.destroy());
      answer.pipe(response);
    });
    outgoing.on('error', () => response.destroy());
    response.on('close', () => {
      open.delete(response);
      outgoing.destroy();
    });
    incoming.pipe(outgoing);
  };
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  const cut = () => {
    for (const response of open) response.socket?.resetAndDestroy();
  };
  owner.after(async () => {
    cut();
    server.closeAllConnections();
    server.close();
  });
  return { baseUrl: `http://127.0.0.1:${(server.address() as AddressInfo).port}`, refusals, cut };
}
