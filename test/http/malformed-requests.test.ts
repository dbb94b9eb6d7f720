// tier: whole, because it makes random or hostile input
/** Each request of the table gets an answer that the table allows, and hides no other request. */
import assert from 'node:assert/strict';
import test from 'node:test';
import Type from 'typebox';
import { ok } from '#src/http/reply/reply.ts';
import { defineRoute } from '#src/http/route.ts';
import { bounded } from '#test/support/processes.ts';
import { malformedRequests } from './malformed-requests.ts';
import { JSON_BODY, RawConnection, serve, type TestServer } from './test-server.ts';
import { docs, thingRoute, use } from './thing-routes.ts';

const routes = [
  thingRoute(() => ok({ hello: 'thing' })),
  defineRoute({
    ...docs,
    method: 'POST',
    path: '/things',
    operationId: 'post',
    access: use,
    body: Type.Object({}),
    handle: ({ body }) => ok(body),
  }),
];
const requests = malformedRequests({ host: 'x', path: '/thing', postPath: '/things', headers: JSON_BODY });
const NEXT = requests[0]!.bytes.replace(/\r\n$/, 'x-request-id: next\r\n\r\n');

/** Resolves with all that the server sent on a new connection, once it has answered or closed. */
async function exchange(server: TestServer, bytes: string): Promise<string> {
  const raw = new RawConnection(server);
  raw.socket.write(bytes, 'latin1');
  const answered = raw.until((text) => /HTTP\/1\.1 [2-5].*\r\n\r\n/s.test(text));
  await bounded('an answer, or the end', Promise.race([answered, raw.closed]), () => bytes.slice(0, 500));
  raw.leave();
  return raw.text;
}

test('every unusual or malformed request gets an allowed answer', async (t) => {
  const server = await serve(t, routes);
  const wrong = await Promise.all(
    requests.map(async ({ name, rule, bytes, allowed }) => {
      const text = await exchange(server, bytes);
      const [, status] = /HTTP\/1\.1 ([2-5]\d\d) /.exec(text) ?? [];
      const seen = status === undefined ? 'closed' : Number(status);
      return allowed.includes(seen) ? [] : [`${name} (${rule}): ${seen}`];
    }),
  );
  assert.deepEqual(wrong.flat(), []);
});

test('bytes after a request whose end is uncertain are never answered', async (t) => {
  const server = await serve(t, routes);
  const wrong = await Promise.all(
    requests
      .filter(({ mayContinue }) => !mayContinue)
      .map(async ({ name, bytes }) => {
        const raw = new RawConnection(server);
        raw.socket.write(bytes + NEXT, 'latin1');
        await bounded('the end of the connection', raw.closed, () => `${name}: ${raw.text}`);
        return /x-request-id: next/i.test(raw.text) ? [name] : [];
      }),
  );
  assert.deepEqual(wrong.flat(), []);
});
