import assert from 'node:assert/strict';
import { once } from 'node:events';
import { connect, createServer } from 'node:net';
import { test } from 'node:test';
import { openHttp10Port } from '#src/app/open-http10.ts';
import { AsyncDisposableStack } from '#src/core/async-disposable-stack.ts';
import { ConnectionLimit } from '#src/http/edge/connection-limit.ts';
import { eventually } from '#test/support/processes.ts';
import { rememberingLog } from '#test/support/temporary-store.ts';
import { testCluster } from '#test/support/test-cluster.ts';

async function freePort(): Promise<number> {
  const server = createServer().listen(0, '127.0.0.1');
  await once(server, 'listening');
  const { port } = server.address() as { port: number };
  server.close();
  await once(server, 'close');
  return port;
}

const isOpen = (port: number) =>
  new Promise<boolean>((resolve) => {
    const socket = connect(port, '127.0.0.1');
    socket.once('connect', () => resolve(true)).once('error', () => resolve(false));
    socket.once('connect', () => socket.destroy());
  });

test('one worker has the port for HTTP/1.0, and the next one opens it when that one has ended', async (t) => {
  const port = await freePort();
  const workers = testCluster(2, () => 0);
  const { log, lines } = rememberingLog();
  const open = async (worker: number) => {
    const stack = new AsyncDisposableStack();
    t.after(() => stack[Symbol.asyncDispose]());
    const cluster = workers[worker]!;
    const connections = new ConnectionLimit(10);
    await openHttp10Port(
      { host: '127.0.0.1', port, target: () => undefined, connections, cluster, log },
      stack,
    );
    return stack;
  };
  await open(1);
  assert.equal(await isOpen(port), false);
  const first = await open(0);
  await eventually('the first worker has it', () => isOpen(port));
  assert.deepEqual(lines, []);
  workers[1]!.takeAll();
  await first[Symbol.asyncDispose]();
  await eventually('the second worker has it', () => isOpen(port));
});
