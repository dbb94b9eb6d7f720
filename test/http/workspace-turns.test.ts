/** How the requests of several workspaces share the turns of the event loop. */
import assert from 'node:assert/strict';
import { once } from 'node:events';
import net from 'node:net';
import test, { type TestContext } from 'node:test';
import { setImmediate as nextTurn } from 'node:timers/promises';
import Type from 'typebox';
import { AppError } from '#src/base/errors/errors.ts';
import type { WorkspaceId } from '#src/base/ids.ts';
import { WorkspaceTurns } from '#src/http/edge/workspace-turns.ts';
import { ok } from '#src/http/reply/reply.ts';
import { defineRoute } from '#src/http/route.ts';
import { auth, principal, serve } from './test-server.ts';
import { docs, use } from './thing-routes.ts';

/** A clock that stands still, but for the work of the tests. */
function manualClock(t: TestContext) {
  let ms = 1000;
  t.mock.method(performance, 'now', () => ms);
  return (by: number) => {
    ms += by;
  };
}

function turnsOf(t: TestContext) {
  const pass = manualClock(t);
  const turns = new WorkspaceTurns();
  const done: string[] = [];
  const request = (workspaceId: string, name: string, ms: number) => {
    const work = () => {
      pass(ms);
      done.push(name);
    };
    if (turns.isAlone(workspaceId)) work();
    else turns.take(workspaceId, work);
  };
  return { pass, turns, done, request };
}

test('requests of the only workspace are handled at once, even if they take long', (t) => {
  const { request, done } = turnsOf(t);
  for (let i = 0; i < 5; i++) request('a', `a${i}`, 10);
  assert.equal(done.length, 5);
});

test('a workspace that has used up its share of a turn waits for the next turn, and delays no other workspace', async (t) => {
  const { request, done } = turnsOf(t);
  request('b', 'b', 0);
  for (let i = 0; i < 6; i++) request('a', `a${i}`, 1);
  request('b', 'c', 1);
  assert.deepEqual(done, ['b', 'a0', 'a1', 'c'], 'in the first turn');
  await nextTurn();
  assert.deepEqual(done.slice(4), ['a2', 'a3'], 'in the second');
  request('a', 'a6', 1);
  await nextTurn();
  assert.deepEqual(done.slice(6), ['a4', 'a5'], 'in the third');
  await nextTurn();
  assert.deepEqual(done.slice(8), ['a6'], 'in the order of their arrival');
});

test('many workspaces whose requests wait take turns, and a turn ends when it was long enough', async (t) => {
  const { request, done } = turnsOf(t);
  for (const workspace of ['a', 'b', 'c', 'd', 'e', 'f'])
    for (let i = 0; i < 2; i++) request(workspace, workspace, 2);
  const begun = done.splice(0);
  assert.deepEqual(begun, ['a', 'a', 'b', 'c', 'd', 'e', 'f'], 'the first workspace was alone at first');
  await nextTurn();
  assert.deepEqual(done.splice(0), ['b', 'c', 'd', 'e']);
  await nextTurn();
  assert.deepEqual(done.splice(0), ['f']);
});

test('a workspace that was alone for ten seconds has its requests handled at once again', async (t) => {
  const { pass, turns } = turnsOf(t);
  turns.isAlone('a');
  assert.equal(turns.isAlone('b'), false);
  pass(9_999);
  assert.equal(turns.isAlone('b'), false);
  pass(1);
  assert.equal(turns.isAlone('b'), true);
});

const TWO: typeof auth = {
  ...auth,
  authenticate(authorization, workspaceHeader) {
    if (authorization !== 'Bearer good') throw new AppError('unauthenticated', 'Send a valid token.');
    return { ...principal, workspaceId: workspaceHeader as WorkspaceId };
  },
};

/** Sends requests of one workspace that hold the loop for 3 ms each, and then one of another. Returns the order in which they are handled. */
async function orderOf(t: TestContext, lines: readonly string[], body: string): Promise<readonly string[]> {
  const handled: string[] = [];
  const hold = (workspaceId: string) => {
    handled.push(workspaceId);
    for (const until = performance.now() + 3; performance.now() < until; );
    return ok({});
  };
  const handle = ({
    principal: caller,
  }: {
    readonly principal?: { readonly workspaceId: string } | undefined;
  }) => hold(caller!.workspaceId);
  const Thing = Type.Object({ name: Type.String() });
  const server = await serve(
    t,
    [
      defineRoute({ ...docs, method: 'GET', path: '/thing', operationId: 'a', access: use, handle }),
      defineRoute({
        ...docs,
        method: 'POST',
        path: '/things',
        operationId: 'b',
        access: use,
        body: Thing,
        handle,
      }),
    ],
    { auth: TWO },
  );
  const connections = await Promise.all(
    Array.from({ length: 21 }, async (_, i) => {
      const socket = net.connect(server.port, '127.0.0.1');
      t.after(() => socket.destroy());
      await once(socket, 'connect');
      const send = () => {
        const head = [...lines, 'host: x', 'authorization: Bearer good'];
        const all = [...head, `service-workspace-id: ${i === 20 ? 'quiet' : 'busy'}`, '', body];
        socket.write(all.join('\r\n'));
      };
      return { socket, send };
    }),
  );
  const answered = async () => {
    const answers = connections.map(({ socket }) => once(socket, 'data'));
    for (const { send } of connections) send();
    for (const [answer] of await Promise.all(answers)) assert.match(String(answer), /^HTTP\/1.1 200/);
  };
  await answered(); // all connections are accepted, and both workspaces known
  handled.length = 0;
  await answered();
  return handled;
}

test('a GET of one workspace waits for only one of twenty earlier GETs of another workspace', async (t) => {
  const order = await orderOf(t, ['GET /thing HTTP/1.1'], '');
  assert.equal(order.length, 21);
  assert.ok(order.indexOf('quiet') <= 1, order.join());
});

test('a POST of one workspace waits for only one of twenty earlier POSTs of another workspace', async (t) => {
  const lines = ['POST /things HTTP/1.1', 'content-type: application/json', 'content-length: 12'];
  const order = await orderOf(t, lines, '{"name":"a"}');
  assert.equal(order.length, 21);
  assert.ok(order.indexOf('quiet') <= 1, order.join());
});

test('a request whose client leaves while it waits for its turn is not handled', async (t) => {
  const handled: string[] = [];
  const gone: net.Socket[] = [];
  const server = await serve(
    t,
    [
      defineRoute({
        ...docs,
        method: 'GET',
        path: '/thing',
        operationId: 'a',
        access: use,
        handle: ({ principal: caller }) => {
          handled.push(caller!.workspaceId);
          for (const socket of gone.splice(0)) socket.resetAndDestroy();
          for (const until = performance.now() + 3; performance.now() < until; );
          return ok({});
        },
      }),
    ],
    { auth: TWO },
  );
  const open = async () => {
    const socket = net.connect(server.port, '127.0.0.1');
    t.after(() => socket.destroy());
    await once(socket, 'connect');
    return socket;
  };
  const send = (socket: net.Socket, workspace: string) => {
    const answer = once(socket, 'data');
    socket.write(
      `GET /thing HTTP/1.1\r\nhost: x\r\nauthorization: Bearer good\r\nservice-workspace-id: ${workspace}\r\n\r\n`,
    );
    return answer;
  };
  const [first, second, third, leaver] = [await open(), await open(), await open(), await open()];
  await send(first, 'quiet');
  await Promise.all([send(second, 'busy'), send(third, 'busy')]);
  await send(leaver, 'busy');
  handled.length = 0;
  gone.push(leaver);
  const answers = [send(second, 'busy'), send(third, 'busy')];
  send(leaver, 'busy').catch(() => {});
  await Promise.all(answers);
  await send(first, 'quiet');
  assert.deepEqual(handled, ['busy', 'busy', 'quiet']);
});
