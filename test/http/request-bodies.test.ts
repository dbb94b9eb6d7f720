import assert from 'node:assert/strict';
import { once } from 'node:events';
import { type IncomingMessage, request } from 'node:http';
import { json } from 'node:stream/consumers';
import test from 'node:test';
import { setImmediate as nextTurn } from 'node:timers/promises';
import { Type } from 'typebox';
import { AppError } from '#src/base/errors/errors.ts';
import { ONE_LINE, WITHOUT_NUL } from '#src/contract/wire/patterns.ts';
import { createCheck } from '#src/http/edge/violations.ts';
import { GOOD, JSON_BODY, RawConnection, send, serve } from './test-server.ts';
import { thingRoutes, violationsOf } from './thing-routes.ts';

test('a body has to be JSON in UTF-8, with its media type', async (t) => {
  const server = await serve(t, thingRoutes);
  const attempt = async (contentType: string | undefined, body: string | Uint8Array) => {
    const headers = { ...GOOD, ...(contentType === undefined ? {} : { 'content-type': contentType }) };
    const answer = await send(server, '/things', { method: 'POST', headers, body });
    return answer.code ?? answer.status;
  };
  assert.equal(await attempt('application/json; charset=utf-8', '{"name":"ä"}'), 201);
  assert.equal(await attempt('APPLICATION/JSON;charset="UTF-8"', '{"name":"n"}'), 201);
  for (const type of [
    undefined,
    'text/plain',
    'application/json; charset=latin1',
    'application/jsonx',
    'application/x-www-form-urlencoded',
  ]) {
    assert.equal(await attempt(type, '{"name":"n"}'), 'unsupported_media_type', type);
  }
  const malformed = [
    '',
    ' ',
    '{',
    '{"name":"n"}x',
    "{'name':1}",
    'nul',
    '\ufeff{"name":"n"}',
    '{"name":"\n"}',
    '[1,]',
    `{"name":"n","anything":${'9'.repeat(309)}}`,
    Buffer.from([0x22, 0xff, 0x22]),
  ];
  for (const body of malformed)
    assert.equal(await attempt('application/json', body), 'malformed_json', JSON.stringify(body));
});

test('a large body is accepted like a small body, and a member name in it may have 64 KiB', async (t) => {
  const server = await serve(t, thingRoutes);
  const attempt = async (body: string) => {
    const answer = await send(server, '/large', { method: 'POST', headers: JSON_BODY, body });
    return answer.code ?? answer.status;
  };
  const filler = `"anything":${JSON.stringify(['\\ "ä😀'.repeat(22_000)])}`;
  assert.equal(await attempt(`{"name":"n",${filler}}`), 200);
  assert.equal(await attempt(`{"name":"n",${filler}]`), 'malformed_json');
  assert.equal(await attempt(`{"nam":"n",${filler}}`), 'invalid_request');
  assert.equal(await attempt(`{"name":"n",${filler.replace('ä', '\\ud800')}}`), 'invalid_request');
  for (const padding of ['', filler]) {
    const named = (bytes: number) =>
      `{"name":"n"${padding && `,${padding}`},"anything":{"${'x'.repeat(bytes - 2)}":1}}`;
    assert.equal(await attempt(named(64 * 1024)), 200);
    assert.equal(await attempt(named(64 * 1024 + 1)), 'malformed_json');
  }
});

test('a body in pieces is read whole, with or without an announced length', async (t) => {
  const { host, port } = await serve(t, thingRoutes);
  const thing = { name: 'n', anything: Array.from({ length: 120_000 }, (_, i) => i) };
  const bytes = Buffer.from(JSON.stringify(thing));
  for (const length of [{ 'content-length': bytes.length }, {}]) {
    const sent = request({
      host,
      port,
      path: '/optional',
      method: 'POST',
      headers: { ...JSON_BODY, ...length },
    });
    for (let from = 0; from < bytes.length; from += 50_000) {
      sent.write(bytes.subarray(from, from + 50_000));
      await nextTurn();
    }
    sent.end();
    const [response] = (await once(sent, 'response')) as [IncomingMessage];
    assert.equal(response.statusCode, 200);
    assert.deepEqual(await json(response), { body: thing });
  }
});

test('a body that does not match is refused with every mistake, without quoting its values', async (t) => {
  const server = await serve(t, thingRoutes);
  const errors = async (body: unknown) => {
    const answer = await send(server, '/things', {
      method: 'POST',
      headers: JSON_BODY,
      body: JSON.stringify(body),
    });
    assert.equal(answer.code, 'invalid_request');
    assert.doesNotMatch(answer.text, /hunter2/);
    return violationsOf(answer.json);
  };
  assert.deepEqual(await errors({ nam: 'hunter2', 'a/b~c': 1 }), [
    { path: '/name', message: 'is required' },
    { path: '/nam', message: 'is not expected here' },
    { path: '/a~1b~0c', message: 'is not expected here' },
  ]);
  assert.deepEqual(await errors({ name: 'n', parts: [{ kind: 'wheel', spokes: 'hunter2' }] }), [
    { path: '/parts/0/spokes', message: 'must be integer' },
  ]);
  assert.deepEqual(await errors({ name: 'n', parts: [{ kind: 'hunter2' }] }), [
    { path: '/parts/0/kind', message: 'must be one of "wheel", "bell"' },
  ]);
  assert.deepEqual(await errors({ name: 'n', parts: [{ kind: null }, 7] }), [
    { path: '/parts/0/kind', message: 'must be one of "wheel", "bell"' },
    { path: '/parts/1', message: 'must be object' },
  ]);
  const mixed = [
    { kind: 'wheel', spokes: 'x' },
    { kind: 'bell', loud: 'x' },
  ];
  assert.deepEqual(await errors({ name: 'n', parts: mixed }), [
    { path: '/parts/0/spokes', message: 'must be integer' },
    { path: '/parts/1/loud', message: 'must be boolean' },
  ]);
  const manyUnions = { name: 'n', parts: Array(10).fill({ kind: 'bell', loud: 'hunter2' }) };
  assert.deepEqual(
    await errors(manyUnions),
    Array.from({ length: 10 }, (_, i) => ({ path: `/parts/${i}/loud`, message: 'must be boolean' })),
  );
  assert.deepEqual(await errors({ name: 'n', labels: { '1a': 'x', b: 'hunter2' } }), [
    { path: '/labels/1a', message: 'is not an allowed name: it must match ^[a-z]+$' },
  ]);
  assert.deepEqual(await errors(['hunter2']), [{ path: '', message: 'must be object' }]);
  assert.deepEqual(await errors('hunter2'), [{ path: '', message: 'must be object' }]);
});

test('prototype members, lone surrogates and numbers beyond a double are refused', async (t) => {
  const server = await serve(t, thingRoutes);
  const bodies = [
    '{"name":"n","__proto__":{"x":1}}',
    '{"name":"n","constructor":1}',
    '{"name":"n","anything":{"a":[{"__proto__":{"x":1}}]}}',
    '{"name":"n","anything":{"\\u005f_proto__":1}}',
    '{"name":"n","anything":[1e308,1e309]}',
    '{"name":"n","anything":{"deep":{"low":-2E+400}}}',
    '{"name":"\\ud800"}',
    '{"name":"n","anything":{"\\udc00":1}}',
  ];
  for (const body of bodies) {
    assert.equal(
      (await send(server, '/things', { method: 'POST', headers: JSON_BODY, body })).code,
      'invalid_request',
      body,
    );
  }
  const fine = '{"name":"__proto__ \\ud83d\\ude00 \\u0000"}';
  assert.equal(
    (await send(server, '/things', { method: 'POST', headers: JSON_BODY, body: fine })).status,
    201,
  );
});

test('deep nesting is refused at any size', async (t) => {
  const server = await serve(t, thingRoutes);
  const post = async (body: string) =>
    (await send(server, '/large', { method: 'POST', headers: JSON_BODY, body })).code;
  const nest = (depth: number) => `{"name":"n","anything":${'['.repeat(depth)}${']'.repeat(depth)}}`;
  assert.equal(await post(nest(127)), undefined);
  assert.equal(await post(nest(128)), 'malformed_json');
  assert.equal(await post(nest(8_000_000)), 'malformed_json');
  assert.equal(await post('['.repeat(16_000_000)), 'malformed_json');
  assert.equal(await post('{"a":'.repeat(3_000_000)), 'malformed_json');
  assert.equal(await post(`{"name":"${'[{'.repeat(1_000_000)}\\"["}`), undefined);
});

test('bodies with very many values are refused early; bodies with many values are checked, but their mistakes are not listed one by one', async (t) => {
  const server = await serve(t, thingRoutes);
  const post = (parts: number) => {
    const body = `{"name":"n","parts":[${Array(parts).fill('{}').join(',')}]}`;
    return send(server, '/large', { method: 'POST', headers: JSON_BODY, body });
  };
  assert.equal((await post(150_000)).code, 'malformed_json');
  const why = { path: '', message: 'does not match the schema, and is too large to say where' };
  for (const parts of [100_000, 2000]) {
    const large = await post(parts);
    assert.deepEqual([large.code, violationsOf(large.json)], ['invalid_request', [why]]);
  }
  assert.equal((violationsOf((await post(1000)).json) as readonly unknown[]).length, 20);
});

test('a mistake in a text of megabytes is reported with its place', () => {
  const line = Type.Union([Type.String({ maxLength: 200, pattern: ONE_LINE }), Type.Null()]);
  const body = Type.String({ pattern: WITHOUT_NUL });
  const check = createCheck(Type.Object({ line, bodies: Type.Array(body) }, { additionalProperties: false }));
  const violations = (value: unknown): unknown => {
    try {
      check(value);
      return [];
    } catch (error) {
      return error instanceof AppError && error.extras.errors;
    }
  };
  const marks = '\u0301'.repeat(8_000_000); // on which a pattern overflows its stack
  const paths = (value: unknown) => JSON.stringify(violations(value)).match(/"\/[^"]*"/g);
  assert.deepEqual(paths({ line: marks, bodies: [] }), ['"/line"']);
  assert.deepEqual(paths({ line: null, bodies: ['x'.repeat(300_000)], more: 1 }), ['"/more"']);
  const atItsEnd = { line: null, bodies: ['short', `${'x'.repeat(300_000)}\0`] };
  assert.deepEqual(violations(atItsEnd), [
    { path: '/bodies/1', message: 'is too long, or does not match the schema' },
  ]);
});

test('a body of 20 MB is refused without being kept in memory, with or without an announced length', async (t) => {
  const server = await serve(t, thingRoutes);
  const body = Buffer.alloc(20_000_000, '[');
  const announced = await send(server, '/things', { method: 'POST', headers: JSON_BODY, body });
  const chunked = await send(server, '/things', {
    method: 'POST',
    headers: { ...JSON_BODY, 'transfer-encoding': 'chunked' },
    body,
  });
  assert.deepEqual([announced.code, chunked.code], ['body_too_large', 'body_too_large']);
});

test('a client that sends a whole body beyond the limit before it reads gets the answer, and its next request is served', async (t) => {
  const server = await serve(t, thingRoutes);
  const head = Object.entries(JSON_BODY).map(([name, value]) => `${name}: ${value}\r\n`);
  const raw = new RawConnection(server);
  const length = 20_000_000;
  raw.write(`POST /things HTTP/1.1\r\nHost: x\r\n${head.join('')}Content-Length: ${length}\r\n\r\n`);
  raw.write('x'.repeat(length));
  raw.write('GET /healthz HTTP/1.1\r\nHost: x\r\n\r\n');
  await raw.until((text) => text.includes('HTTP/1.1 200 '));
  assert.match(raw.text, /^HTTP\/1\.1 413 /);
  raw.leave();
});

test('only a bounded part of an endless body is read and discarded', async (t) => {
  const server = await serve(t, thingRoutes);
  const head = Object.entries(JSON_BODY).map(([name, value]) => `${name}: ${value}\r\n`);
  const raw = new RawConnection(server);
  raw.write(`POST /things HTTP/1.1\r\nHost: x\r\n${head.join('')}Transfer-Encoding: chunked\r\n\r\n`);
  const chunk = `${(10_000_000).toString(16)}\r\n${'x'.repeat(10_000_000)}\r\n`;
  for (let n = 0; n < 8; n++) raw.write(chunk);
  await raw.closed;
  assert.match(raw.text, /^$|^HTTP\/1\.1 413 .*connection: close/is);
});

test('a body with too large an announced length is refused before the client sends it', async (t) => {
  const server = await serve(t, thingRoutes);
  const raw = new RawConnection(server);
  const head = Object.entries(JSON_BODY).map(([name, value]) => `${name}: ${value}\r\n`);
  raw.write(`POST /things HTTP/1.1\r\nHost: x\r\n${head.join('')}Content-Length: 5000\r\n\r\n`);
  await raw.until((text) => text.includes('body_too_large'));
  assert.match(raw.text, /^HTTP\/1\.1 413 /);
  raw.leave();
});

test('a body exactly at the limit is accepted, and one byte more is not', async (t) => {
  const server = await serve(t, thingRoutes);
  const ofLength = (length: number) => `{"name":"${'n'.repeat(length - 11)}"}`;
  const post = async (body: string) =>
    (await send(server, '/things', { method: 'POST', headers: JSON_BODY, body })).status;
  assert.deepEqual([await post(ofLength(4096)), await post(ofLength(4097))], [201, 413]);
});

test('an optional body may be left out, and a route without a body ignores a sent body', async (t) => {
  const server = await serve(t, thingRoutes);
  const without = await send(server, '/optional', { method: 'POST' });
  const withBody = await send(server, '/optional', {
    method: 'POST',
    headers: JSON_BODY,
    body: '{"name":"n"}',
  });
  const wrong = await send(server, '/optional', { method: 'POST', headers: JSON_BODY, body: '{}' });
  const ignored = await send(server, '/bodiless', { method: 'POST', headers: JSON_BODY, body: '{' });
  assert.deepEqual(
    [without.json, withBody.json, wrong.status, ignored.status],
    [{ body: null }, { body: { name: 'n' } }, 400, 200],
  );
});

test('a request with an unclear end is refused, and its connection ends', async (t) => {
  const server = await serve(t, thingRoutes);
  const forms = [
    'Content-Length: 12\r\nContent-Length: 13',
    'Content-Length: 12\r\nContent-Length: 12',
    'Content-Length: +12',
    'Content-Length: -12',
    'Content-Length: 0x0c',
    'Content-Length: 12, 12',
    'Content-Length: 99999999999999999999',
    'Transfer-Encoding: chunked\r\nContent-Length: 12',
    'Content-Length: 12\r\nTransfer-Encoding: chunked',
    'Transfer-Encoding: xchunked',
    'Transfer-Encoding: identity',
    'Transfer-Encoding: gzip, chunked',
    'Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked',
  ];
  const head = Object.entries(JSON_BODY).map(([name, value]) => `${name}: ${value}\r\n`);
  for (const form of forms) {
    for (const path of ['/things', '/bodiless']) {
      const raw = new RawConnection(server);
      raw.write(`POST ${path} HTTP/1.1\r\nHost: x\r\n${head.join('')}${form}\r\n\r\n{"name":"n"}`);
      await raw.until((text) => text.startsWith('HTTP/1.1 ') && text.includes('\r\n\r\n'));
      raw.socket.end();
      await raw.closed;
      assert.match(raw.text, /^HTTP\/1\.1 400 /, `${path} ${form}`);
      assert.match(raw.text, /connection: close/i, `${path} ${form}`);
    }
  }
});
