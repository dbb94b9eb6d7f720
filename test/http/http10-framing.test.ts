import assert from 'node:assert/strict';
import { text } from 'node:stream/consumers';
import test, { type TestContext } from 'node:test';
import { relayTo, sendRaw } from './relay-to.ts';

/** A body that is a request itself, if the server does not know that it is a body. */
const HIDDEN = 'POST /hidden HTTP/1.1\r\nHost: x\r\nContent-Length: 0\r\n\r\n';
const METHODS = ['DELETE', 'GET', 'HEAD', 'OPTIONS', 'POST', 'PUT', 'PATCH'];

/** Opens a relay to a server that notes each request with its host and its body. */
async function relayToRecorder(t: TestContext) {
  const seen: unknown[] = [];
  const codings: unknown[] = [];
  const { port } = await relayTo(t, (req, res) => {
    codings.push(req.headers['transfer-encoding']);
    void text(req).then((body) => {
      seen.push([req.method, req.headers.host, body]);
      res.end();
    });
  });
  return { port, seen, codings };
}

test('a chunked body is forwarded as a body for every method', async (t) => {
  const { port, seen } = await relayToRecorder(t);
  const size = HIDDEN.length.toString(16);
  for (const method of METHODS) {
    const head = [`${method} / HTTP/1.1`, 'Host: q', 'Transfer-Encoding: chunked', ''];
    await sendRaw(port, [...head, size, HIDDEN, '0', '', '']);
  }
  assert.deepEqual(
    seen,
    METHODS.map((method) => [method, 'q', HIDDEN]),
  );
});

test('a client cannot have the length of a body or the host dropped by naming them in Connection', async (t) => {
  const { port, seen } = await relayToRecorder(t);
  const connection = 'Connection: close, Content-Length, transfer-encoding, host';
  for (const method of METHODS) {
    const head = [`${method} / HTTP/1.0`, 'Host: public.example', connection];
    await sendRaw(port, [...head, `Content-Length: ${HIDDEN.length}`, '', HIDDEN]);
  }
  assert.deepEqual(
    seen,
    METHODS.map((method) => [method, 'public.example', HIDDEN]),
  );
});

test('a request without a body has none when it is forwarded, and a coding is forwarded as it came', async (t) => {
  const { port, seen, codings } = await relayToRecorder(t);
  for (const method of METHODS) await sendRaw(port, [`${method} / HTTP/1.0`, 'Host: q', '', '']);
  assert.deepEqual(
    seen,
    METHODS.map((method) => [method, 'q', '']),
  );
  assert.deepEqual(
    codings,
    METHODS.map(() => undefined),
  );
  await sendRaw(port, [
    'POST / HTTP/1.1',
    'Host: q',
    'Transfer-Encoding: gzip, chunked',
    '',
    '1',
    'x',
    '0',
    '',
    '',
  ]);
  assert.equal(codings.at(-1), 'gzip, chunked');
});
