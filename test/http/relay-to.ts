/** A relay for HTTP/1.0 with a server behind it, and clients that send it what no HTTP library would. */
import assert from 'node:assert/strict';
import { once } from 'node:events';
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import { connect } from 'node:net';
import { text } from 'node:stream/consumers';
import type { TestContext } from 'node:test';
import { ConnectionLimit } from '#src/http/edge/connection-limit.ts';
import { openHttp10Relay } from '#src/http/edge/http10-relay.ts';

export const HOST = '127.0.0.1';

/** Opens a relay to a server of Node.js that answers with `serve`. Both are closed when the test ends. */
export async function relayTo(
  t: TestContext,
  serve: (req: IncomingMessage, res: ServerResponse) => void,
  connections = new ConnectionLimit(),
) {
  const server = createServer(serve).listen(0, HOST);
  await once(server, 'listening');
  t.after(() => {
    server.close();
    server.closeAllConnections();
  });
  const address = server.address();
  assert.ok(typeof address === 'object' && address !== null);
  const relay = await openHttp10Relay({
    host: HOST,
    port: 0,
    target: () => ({ host: '0.0.0.0', port: address.port }),
    connections,
  });
  t.after(() => relay[Symbol.dispose]());
  return relay;
}

/** Resolves with everything that comes back until the connection ends. */
export async function sendRaw(port: number, lines: readonly string[]): Promise<string> {
  const socket = connect(port, HOST);
  socket.write(lines.join('\r\n'));
  return text(socket);
}
