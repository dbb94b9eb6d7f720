// tier: whole, because it makes random or hostile input
/**
 * Half-open, slow and oversized requests. uWebSockets.js handles most of them, and these tests
 * check that it does.
 */
import assert from 'node:assert/strict';
import test from 'node:test';
import Type from 'typebox';
import { ConnectionLimit } from '#src/http/edge/connection-limit.ts';
import { json } from '#src/http/reply/reply.ts';
import { defineRoute } from '#src/http/route.ts';
import { bounded, eventually } from '#test/support/processes.ts';
import { GOOD, JSON_BODY, RawConnection, send, serve } from './test-server.ts';

const common = { tags: [], access: { action: 'thing.use' }, responses: { 200: { description: 'It.' } } };
const routes = [
  defineRoute({
    ...common,
    method: 'GET',
    path: '/thing',
    operationId: 'getThing',
    summary: 'A thing',
    handle: () => json(200, { hello: 'thing' }),
  }),
  defineRoute({
    ...common,
    method: 'POST',
    path: '/things',
    operationId: 'makeThing',
    summary: 'Make one',
    body: Type.Object({}),
    handle: () => json(200, {}),
  }),
];
const HEAD = Object.entries(JSON_BODY)
  .map(([name, value]) => `${name}: ${value}\r\n`)
  .join('');
const NEXT = `GET /thing HTTP/1.1\r\nHost: x\r\n${HEAD}\r\n`;

/** Everything that the server sent until it ended the connection. */
async function ended(raw: RawConnection): Promise<{ text: string }> {
  await bounded('the server ends the connection', raw.closed, () => raw.text);
  return { text: raw.text };
}

test('no bytes after a request with an unclear end are answered', async (t) => {
  const server = await serve(t, routes);
  for (const form of [
    'Content-Length: 2\r\nContent-Length: 2',
    'Content-Length: 2\r\nContent-Length: 40',
    'Transfer-Encoding: xchunked',
    'Transfer-Encoding: chunked\r\nContent-Length: 2',
    'Content-Length: +2',
  ]) {
    const raw = new RawConnection(server);
    raw.write(`POST /things HTTP/1.1\r\nHost: x\r\n${HEAD}${form}\r\n\r\n{}${NEXT}${NEXT}`);
    const { text } = await ended(raw);
    assert.ok(!text.includes('hello'), `${form}: ${text}`);
  }
});

test('bytes after a chunked body, or after a request with two lengths, are never answered', async (t) => {
  const server = await serve(t, routes);
  const chunked = `POST /things HTTP/1.1\r\nHost: x\r\n${HEAD}Transfer-Encoding: chunked\r\n\r\n`;
  for (const bytes of [
    `${chunked}2\r\n{}\r\n0\r\n\r\n`,
    `${chunked}2\n{}\n0\n\n`,
    `${chunked}2\r\n{}0\r\n\r\n`,
    `${chunked}2\r\n{}\r\n0\r\n`,
    `${chunked}2 \r\n{}\r\n0\r\n\r\n`,
    `${chunked}2;a=b\n{}\r\n0\r\n\r\n`,
    `GET /thing HTTP/1.1\r\nHost: x\r\n${HEAD}Transfer-Encoding: chunked\r\n\r\n0\r\n\r\n`,
    `DELETE /thing HTTP/1.1\r\nHost: x\r\nContent-Length: 2\r\nContent-Length: 4\r\n\r\n{}`,
    `POST /nowhere HTTP/1.1\r\nHost: x\r\nContent-Length: 2\r\nContent-Length: 4\r\n\r\n{}`,
    `POST /things HTTP/1.1\r\nHost: x\r\n${HEAD}Content-Length: \r\n\r\n`,
  ]) {
    const raw = new RawConnection(server);
    raw.write(`${bytes}${NEXT}`);
    const { text } = await ended(raw);
    assert.ok(!text.includes('hello'), `${bytes}: ${text}`);
  }
});

test('a chunked body is accepted, and its connection ends after the answer', async (t) => {
  const server = await serve(t, routes);
  const raw = new RawConnection(server);
  raw.write(`POST /things HTTP/1.1\r\nHost: x\r\n${HEAD}Transfer-Encoding: chunked\r\n\r\n1\r\n{\r\n`);
  raw.write('1\r\n}\r\n0\r\n\r\n');
  const { text } = await ended(raw);
  assert.match(text, /^HTTP\/1\.1 200 OK\r\n/);
  assert.match(text, /\r\nconnection: close\r\n/i);
});

test('a head that is too long or malformed reaches no route', async (t) => {
  const server = await serve(t, routes);
  for (const head of [
    `GET /thing HTTP/1.1\r\nHost: x\r\n${HEAD}X-Long: ${'a'.repeat(2_000_000)}\r\n\r\n`,
    `GET /thing HTTP/1.1\r\nHost: x\r\n${HEAD}${'X-Many: a\r\n'.repeat(500)}\r\n`,
    `GET /thing HTTP/1.1\r\nHost: x\r\n${HEAD}Content-Length : 2\r\n\r\n`,
    `GET /thing HTTP/1.1\r\nHost: x\r\n${HEAD}X-Folded: a\r\n b\r\n\r\n`,
    `GET /thing HTTP/1.1\r\nHost: x\r\n${HEAD}X-Zero: \0\r\n\r\n`,
    `GET /thing HTTP/1.0\r\nHost: x\r\n${HEAD}\r\n`,
    `GET http://x/thing HTTP/1.1\r\nHost: x\r\n${HEAD}\r\n`,
    'PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n',
    '\x16\x03\x01\x02\x00\x01\x00',
  ]) {
    const raw = new RawConnection(server);
    raw.write(head);
    raw.socket.end();
    const { text } = await ended(raw);
    assert.match(text, /^$|^HTTP\/1\.1 (4\d\d|505) /, head.slice(0, 40));
    assert.ok(!text.includes('hello'));
  }
});

test('clients that stop in the middle of a request are disconnected, and delay no other client', async (t) => {
  const server = await serve(t, routes);
  const halves = {
    silent: '',
    'half a head': `GET /thing HTTP/1.1\r\nHost: x\r\n`,
    'half a line': 'GET /thi',
    'half a head after an answer': `${NEXT}GET /thing HTTP/1.1\r\nHo`,
    'half a body': `POST /things HTTP/1.1\r\nHost: x\r\n${HEAD}Content-Length: 1000\r\n\r\n{`,
    'half a chunk': `POST /things HTTP/1.1\r\nHost: x\r\n${HEAD}Transfer-Encoding: chunked\r\n\r\n64\r\n{`,
  };
  const left = Object.entries(halves).map(async ([name, bytes]) => {
    const raw = new RawConnection(server);
    if (bytes !== '') raw.write(bytes);
    const { text } = await ended(raw);
    assert.equal(
      text.split('HTTP/1.1 ').length - 1,
      name.endsWith('after an answer') ? 1 : 0,
      `${name}: ${text}`,
    );
  });
  const crowd = Array.from({ length: 500 }, () => {
    const raw = new RawConnection(server);
    raw.write('GET /thing HTTP/1.1\r\nX-Slow: ');
    return raw;
  });
  for (let n = 0; n < 20; n++) assert.equal((await send(server, '/thing', { headers: GOOD })).status, 200);
  for (const raw of crowd) raw.leave();
  await Promise.all(left);
});

test('connections beyond the limit are closed, and existing ones continue', async (t) => {
  const server = await serve(t, routes, { connections: new ConnectionLimit(3) });
  const kept = Array.from({ length: 3 }, () => new RawConnection(server));
  const answered = (raw: RawConnection, times: number) =>
    raw.until((text) => text.split('hello').length > times);
  for (const raw of kept) {
    raw.write(NEXT);
    await answered(raw, 1);
  }
  const refused = new RawConnection(server);
  refused.write(NEXT);
  assert.equal((await ended(refused)).text, '');
  for (const raw of kept) raw.write(NEXT);
  await Promise.all(kept.map((raw) => answered(raw, 2)));
  kept[0]!.leave();
  await kept[0]!.closed;
  const next = await eventually('a place is free again', async () => {
    const raw = new RawConnection(server);
    raw.write(NEXT);
    await Promise.race([raw.closed, answered(raw, 1)]);
    return raw.text.includes('hello') && raw;
  });
  for (const raw of [next, ...kept.slice(1)]) raw.leave();
});

test('a client that sends one byte at a time cannot keep a connection open for ever', async (t) => {
  const server = await serve(t, routes);
  const raw = new RawConnection(server);
  raw.write('GET /thing HTTP/1.1\r\nHost: x\r\nX-Slow: ');
  const drip = setInterval(() => raw.write('a'), 500);
  t.after(() => clearInterval(drip));
  const { text } = await ended(raw);
  assert.equal(text, '');
});

test('answers of every kind have the security headers', async (t) => {
  const server = await serve(t, routes);
  const answers = await Promise.all([
    send(server, '/thing'),
    send(server, '/nowhere'),
    send(server, '/thing', { method: 'DELETE' }),
    send(server, '/thing', { method: 'OPTIONS' }),
    send(server, '/thing', { method: 'HEAD' }),
    send(server, '/thing', { headers: {} }),
    send(server, '/things', { method: 'POST', headers: GOOD, body: '<' }),
    send(server, '/things', { method: 'POST', headers: JSON_BODY, body: '{' }),
  ]);
  assert.deepEqual(
    answers.map(({ status }) => status),
    [200, 404, 405, 204, 200, 401, 415, 400],
  );
  for (const { status, headers } of answers) {
    const seen = [
      headers['x-content-type-options'],
      headers['content-security-policy'],
      headers['referrer-policy'],
      headers['cross-origin-resource-policy'],
      headers['cache-control'],
    ];
    const csp = "default-src 'none'; frame-ancestors 'none'";
    assert.deepEqual(seen, ['nosniff', csp, 'no-referrer', 'same-origin', 'no-store'], `${status}`);
    assert.ok(headers['x-request-id'], `${status}`);
  }
});
