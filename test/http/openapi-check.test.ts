/** The check that journeys use: every answer of a server is declared by its OpenAPI document. */
import assert from 'node:assert/strict';
import test from 'node:test';
import { type Answer, createAnswerCheck } from '#test/support/openapi-check.ts';
import { document, routes, thing } from './documented-things.ts';
import { JSON_BODY, send, serve } from './test-server.ts';

const answer = (changes: Partial<Answer>): Answer => ({
  method: 'POST',
  path: '/things?dry=1',
  status: 201,
  contentType: 'application/json',
  body: thing,
  ...changes,
});
const problem = (code: string, status: number) => ({
  type: 'urn:x',
  title: 't',
  status,
  detail: 'd',
  instance: '/',
  code,
  requestId: 'r',
});

test('the check accepts declared responses', () => {
  const check = createAnswerCheck(document);
  check(answer({}));
  check(answer({ status: 400, body: { ok: false } }));
  check(
    answer({ status: 409, contentType: 'application/problem+json', body: problem('already_exists', 409) }),
  );
  check(answer({ method: 'HEAD', path: '/things', status: 200, body: '' }));
  check(answer({ method: 'OPTIONS', status: 204, contentType: '', body: '' }));
  check(answer({ method: 'DELETE', path: '/things/t_1', status: 204, contentType: '', body: '' }));
  check(
    answer({
      path: '/nothing',
      status: 404,
      contentType: 'application/problem+json',
      body: problem('not_found', 404),
    }),
  );
  check(
    answer({
      method: 'PUT',
      status: 405,
      contentType: 'application/problem+json',
      body: problem('method_not_allowed', 405),
    }),
  );
  const frame = (event: unknown) => `id: a-1\ndata: ${JSON.stringify(event)}\n\n`;
  const time = '2026-01-02T03:04:05.678Z';
  const body = `:\n${frame({ type: 'session.replayed', sessionId: 's', time, data: {} })}id: a-2\nda`;
  check(
    answer({
      method: 'GET',
      path: '/things/t_1/events',
      status: 200,
      contentType: 'text/event-stream',
      body,
    }),
  );
});

test('the data of every event is checked like the body of a reply', () => {
  const check = createAnswerCheck(document);
  const time = '2026-01-02T03:04:05.678Z';
  const events: readonly [object, RegExp][] = [
    [{ type: 'session.replayed', sessionId: 's', data: {} }, /required property 'time'/],
    [
      { type: 'session.snapshot', sessionId: 's', time, data: { sessionId: 's' } },
      /required property 'notebookId'/,
    ],
    [
      { type: 'cell-op', sessionId: 's', time, data: { cellId: 'a', status: 'sleeping' } },
      /data\/status must be equal to/,
    ],
    [
      { type: 'run-status', sessionId: 's', time, data: { runId: 'r', status: 'starting' } },
      /data\/status must be equal to/,
    ],
    [
      { type: 'cell-op', sessionId: 's', time, missed: 'yes', data: { cellId: 'a' } },
      /missed must be boolean/,
    ],
  ];
  for (const [event, why] of events) {
    const body = `id: a-1\ndata: ${JSON.stringify(event)}\n\n`;
    const given = {
      method: 'GET',
      path: '/things/t_1/events',
      status: 200,
      contentType: 'text/event-stream',
    };
    assert.throws(() => check(answer({ ...given, body })), why);
  }
});

test('the check refuses undeclared responses', () => {
  const check = createAnswerCheck(document);
  const refused: readonly [Partial<Answer>, RegExp][] = [
    [{ status: 202 }, /the status is not declared/],
    [{ contentType: 'text/html' }, /the media type text\/html is not declared/],
    [{ body: { ...thing, extra: 1 } }, /must NOT have additional properties/],
    [{ body: { thingId: 't_1' } }, /must have required property 'parts'/],
    [{ body: { thingId: 't_1', parts: [{ partId: 1 }] } }, /parts\/0\/partId must be string/],
    [
      { status: 409, contentType: 'application/problem+json', body: problem('session_busy', 409) },
      /the code session_busy is not declared/,
    ],
    [{ path: '/nothing' }, /no such operation, so it should be 404/],
    [{ method: 'PUT' }, /no such operation, so it should be 405/],
    [{ method: 'DELETE', path: '/things/t_1', status: 204, body: {} }, /no body is declared/],
    [
      {
        method: 'GET',
        path: '/things/t_1/events',
        status: 200,
        contentType: 'text/event-stream',
        body: 'id: 1\ndata: {"type":"session.replayed","sessionId":"s","data":{"x":1}}\n\n',
      },
      /must NOT have additional properties/,
    ],
  ];
  for (const [changes, why] of refused) assert.throws(() => check(answer(changes)), why);
});

test('real answers pass the check', async (t) => {
  const server = await serve(t, routes);
  const check = createAnswerCheck(document);
  const requests = [
    ['GET', '/things', undefined],
    ['GET', '/things?limit=x', undefined],
    ['POST', '/things', '{"partId":"p"}'],
    ['POST', '/things', '{}'],
    ['POST', '/things', '{'],
    ['DELETE', '/things/t_1', undefined],
    ['GET', '/healthz', undefined],
    ['GET', '/api/v3/openapi.json', undefined],
    ['PUT', '/things', undefined],
    ['GET', '/nothing', undefined],
  ] as const;
  for (const [method, path, body] of requests) {
    const { status, headers, json, text } = await send(server, path, {
      method,
      headers: JSON_BODY,
      ...(body === undefined ? {} : { body }),
    });
    check({ method, path, status, contentType: headers['content-type'] ?? '', body: json ?? text });
  }
});
