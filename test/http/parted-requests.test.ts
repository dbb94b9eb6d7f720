/** A request is answered in the same way however its bytes are divided into segments. */
import assert from 'node:assert/strict';
import test from 'node:test';
import Type from 'typebox';
import { noContent, ok, stream } from '#src/http/reply/reply.ts';
import { defineRoute } from '#src/http/route.ts';
import { answersInParts, everyCut } from '#test/support/parted-requests.ts';
import { JSON_BODY, serve } from './test-server.ts';
import { docs, thingRoute, use } from './thing-routes.ts';

const events = { responses: { 200: { description: 'd', contentType: 'text/event-stream' } } };
const routes = [
  thingRoute(() => ok({ hello: 'thing' })),
  thingRoute(() => noContent(), 'DELETE'),
  ...(['POST', 'PATCH'] as const).map((method) =>
    defineRoute({
      ...docs,
      method,
      path: '/things',
      operationId: method,
      access: use,
      body: Type.Object({ name: Type.String() }),
      handle: ({ body }) => ok(body),
    }),
  ),
  defineRoute({
    ...docs,
    method: 'PUT',
    path: '/files/:path*',
    operationId: 'put',
    access: use,
    takesBytes: true,
    handle: async ({ params, content }) => {
      let bytes = 0;
      for await (const piece of content) bytes += piece.length;
      return ok({ ...params, bytes });
    },
  }),
  defineRoute({
    ...docs,
    ...events,
    method: 'GET',
    path: '/events',
    operationId: 'events',
    access: use,
    handle: () =>
      stream((sink) => {
        setImmediate(() => sink.end());
        const nothing = () => {};
        return { probe: () => new Uint8Array(), writable: nothing, cutOff: nothing, close: nothing };
      }),
  }),
  defineRoute({
    ...docs,
    method: 'GET',
    path: '/sign-in/callback',
    operationId: 'callback',
    access: 'public',
    query: Type.Object({ code: Type.String(), state: Type.String() }),
    handle: ({ query }) => ok({ code: query.code.length, state: query.state }),
  }),
];
const HEAD = Object.entries({ ...JSON_BODY, host: 'x', 'x-request-id': 'mine', connection: 'close' })
  .map(([name, value]) => `${name}: ${value}\r\n`)
  .join('');
const BODY = '{"name": "bell"}';
const framed = `${HEAD}content-length: ${BODY.length}\r\n\r\n${BODY}`;

const REQUESTS: Readonly<Record<string, string>> = {
  GET: `GET /thing HTTP/1.1\r\n${HEAD}\r\n`,
  HEAD: `HEAD /thing HTTP/1.1\r\n${HEAD}\r\n`,
  DELETE: `DELETE /thing HTTP/1.1\r\n${HEAD}\r\n`,
  OPTIONS: `OPTIONS /thing HTTP/1.1\r\n${HEAD}\r\n`,
  'an unknown path': `GET /nowhere HTTP/1.1\r\n${HEAD}\r\n`,
  POST: `POST /things HTTP/1.1\r\n${framed}`,
  PATCH: `PATCH /things HTTP/1.1\r\n${framed}`,
  'a POST in chunks': `POST /things HTTP/1.1\r\n${HEAD}transfer-encoding: chunked\r\n\r\n4\r\n{"na\r\nC\r\nme": "bell"}\r\n0\r\n\r\n`,
  'a PUT of bytes': `PUT /files/a/b HTTP/1.1\r\n${framed}`,
  'an event stream': `GET /events HTTP/1.1\r\n${HEAD}\r\n`,
  'a sign-in with a long code': `GET /sign-in/callback?code=${'c'.repeat(1500)}&state=s HTTP/1.1\r\n${HEAD}\r\n`,
};

for (const [name, request] of Object.entries(REQUESTS))
  test(`${name} gets the same answer when it is cut at any byte`, async (t) => {
    const server = await serve(t, routes);
    const [whole = ''] = await answersInParts(server, [[request]]);
    assert.match(whole, name === 'an unknown path' ? /^HTTP\/1\.1 404 / : /^HTTP\/1\.1 20[04] /);
    const answers = await answersInParts(server, everyCut(request));
    const different = answers.flatMap((answer, at) =>
      answer === whole ? [] : [`cut at ${at + 1}: ${answer}`],
    );
    assert.deepEqual(different, []);
  });

test('a sign-in with a code of 12 KB is answered in segments of usual sizes', async (t) => {
  const server = await serve(t, routes);
  const request = `GET /sign-in/callback?code=${'c'.repeat(12_000)}&state=s HTTP/1.1\r\n${HEAD}\r\n`;
  const inPieces = (bytes: number) =>
    Array.from({ length: Math.ceil(request.length / bytes) }, (_, n) =>
      request.slice(n * bytes, (n + 1) * bytes),
    );
  const answers = await answersInParts(server, [request.length, 4096, 1460, 536].map(inPieces));
  for (const answer of answers) assert.match(answer, /^HTTP\/1\.1 200 .*\{"code":12000,"state":"s"\}$/s);
});
