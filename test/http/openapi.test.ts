import assert from 'node:assert/strict';
import test from 'node:test';
import { Ajv2020 } from 'ajv/dist/2020.js';
import addFormats from 'ajv-formats';
import Type from 'typebox';
import { createOpenApi } from '#src/http/openapi/document.ts';
import { created, encodedJson, noContent, ok, stream } from '#src/http/reply/reply.ts';
import { defineRoute, type Route } from '#src/http/route.ts';
import { healthRoutes } from '#src/http/routes/health.ts';
import { withOpenApi } from '#src/http/routes/openapi.ts';
import { AgentStreamEventSchema, NotebookStreamEventSchema } from '#src/wire/events.ts';
import { type Answer, createAnswerCheck } from '#test/support/openapi-check.ts';
import { auth, JSON_BODY, send, serve } from './test-server.ts';

const Part = Type.Object({ partId: Type.String() }, { $id: 'Part', additionalProperties: false });
const Thing = Type.Object(
  { thingId: Type.String(), part: Type.Optional(Part), parts: Type.Array(Part) },
  { $id: 'Thing', additionalProperties: false },
);
const thing = { thingId: 't_1', parts: [{ partId: 'p' }] };
const use = { action: 'thing.use' } as const;
const tags = ['Things'];

const things: readonly Route[] = [
  defineRoute({
    method: 'GET',
    path: '/things',
    operationId: 'listThings',
    summary: 'Lists things',
    tags,
    access: use,
    query: Type.Object({
      limit: Type.Integer({ default: 50, description: 'How many.' }),
      after: Type.Optional(Type.String()),
    }),
    responses: { 200: { description: 'A page.', schema: Type.Object({ items: Type.Array(Thing) }) } },
    errors: ['invalid_cursor'],
    handle: () => ok({ items: [thing] }),
  }),
  defineRoute({
    method: 'POST',
    path: '/things',
    operationId: 'createThing',
    summary: 'Creates a thing',
    description: 'At once.',
    tags,
    access: use,
    body: Part,
    sameOrigin: true,
    responses: {
      201: { description: 'Created.', schema: Thing, headers: { location: 'Where it is.' } },
      400: {
        description: 'The probe failed.',
        schema: Type.Object({ ok: Type.Literal(false) }, { additionalProperties: false }),
      },
    },
    errors: ['already_exists'],
    handle: () => created(thing, '/things/t_1'),
  }),
  defineRoute({
    method: 'DELETE',
    path: '/things/:thingId',
    operationId: 'deleteThing',
    summary: 'Deletes a thing',
    tags,
    access: { action: 'forbidden' },
    responses: { 204: { description: 'Gone.' } },
    handle: () => noContent(),
  }),
  defineRoute({
    method: 'GET',
    path: '/things/:thingId/events',
    operationId: 'streamThing',
    summary: 'Streams a thing',
    tags,
    access: use,
    headers: { 'last-event-id': 'Where to go on.' },
    responses: {
      200: {
        description: 'The stream.',
        contentType: 'text/event-stream',
        schema: NotebookStreamEventSchema,
      },
    },
    handle: () => stream(() => ({ probe: () => Buffer.alloc(0), writable() {}, cutOff() {}, close() {} })),
  }),
];
const routes = withOpenApi([...healthRoutes(() => ({ ready: true })), ...things], {
  version: '1.2.3',
  requirements: auth.requirements,
});
const document = createOpenApi(routes, { version: '1.2.3', requirements: auth.requirements });

function every(value: unknown, visit: (member: Readonly<Record<string, unknown>>) => void): void {
  if (typeof value !== 'object' || value === null) return;
  if (!Array.isArray(value)) visit(Object.fromEntries(Object.entries(value)));
  for (const member of Object.values(value)) every(member, visit);
}

test('an operation says all that its route does', () => {
  const operation = document.paths['/things']?.post;
  assert.deepEqual(
    { ...operation, responses: undefined, parameters: undefined },
    {
      operationId: 'createThing',
      summary: 'Creates a thing',
      description: 'At once.\n\nRole: viewer or higher.',
      tags,
      security: [{ bearer: ['workspaceRuntime:connect'], workspace: [] }],
      parameters: undefined,
      requestBody: {
        required: true,
        content: { 'application/json': { schema: { $ref: '#/components/schemas/Part' } } },
      },
      responses: undefined,
    },
  );
});

test('the codes of an operation are its own and those of the edge', () => {
  const codes: unknown[] = [];
  every(document.paths['/things']?.post?.responses, (response) => {
    if (Array.isArray(response['x-error-codes'])) codes.push(...response['x-error-codes']);
  });
  assert.deepEqual(codes.sort(), [
    'already_exists',
    'body_too_large',
    'cross_origin',
    'idempotency_in_progress',
    'idempotency_key_reused',
    'internal',
    'invalid_request',
    'malformed_json',
    'missing_scope',
    'missing_workspace',
    'not_found',
    'record_damaged',
    'role_too_low',
    'storage_full',
    'too_many_attempts',
    'unauthenticated',
    'unavailable',
    'unsupported_media_type',
  ]);
});

test('a named schema is there once and referred to everywhere', () => {
  assert.deepEqual(
    Object.keys(document.components.schemas ?? {}).filter((name) => /Thing|Part/.test(name)),
    ['Part', 'PartOutput', 'Thing'],
  );
  assert.deepEqual(document.components.schemas?.Thing, {
    type: 'object',
    required: ['thingId', 'parts'],
    properties: {
      thingId: { type: 'string' },
      part: { $ref: '#/components/schemas/PartOutput' },
      parts: { type: 'array', items: { $ref: '#/components/schemas/PartOutput' } },
    },
  });
});

test('what clients send may have no further members, what they receive may', () => {
  const { Part, PartOutput } = Object.fromEntries(Object.entries(document.components.schemas ?? {}));
  const member = { type: 'object', required: ['partId'], properties: { partId: { type: 'string' } } };
  assert.deepEqual(Part, { ...member, additionalProperties: false });
  assert.deepEqual(PartOutput, member);
});

test('a header without which the handler refuses the request is required, others are not', () => {
  const route = defineRoute({
    method: 'GET',
    path: '/things/:thingId',
    operationId: 'getThing',
    summary: 's',
    tags,
    access: use,
    headers: { 'thing-session': 'Which session.', 'thing-hint': 'A hint.' },
    requiredHeaders: ['thing-session'],
    responses: { 200: { description: 'd' } },
    handle: () => noContent(),
  });
  const made = createOpenApi([route], { version: '1', requirements: auth.requirements });
  const parameters = made.paths['/things/{thingId}']?.get?.parameters as
    | readonly { readonly name: string; readonly required?: boolean }[]
    | undefined;
  const required = (name: string) => parameters?.find((parameter) => parameter.name === name)?.required;
  assert.deepEqual([required('Thing-Session'), required('Thing-Hint')], [true, undefined]);
});

test('two schemas of one name are refused', () => {
  const Other = Type.Object({}, { $id: 'Part' });
  const clash = defineRoute({
    method: 'GET',
    path: '/other',
    operationId: 'o',
    summary: 's',
    tags: [],
    access: 'public',
    responses: { 200: { description: 'd', schema: Other } },
    handle: () => ok({}),
  });
  assert.throws(
    () => createOpenApi([...things, clash], { version: '1', requirements: auth.requirements }),
    /two different schemas are named PartOutput/,
  );
});

test('the document is sound: every reference resolves, every schema compiles, every id is unique', () => {
  const plain: unknown = JSON.parse(JSON.stringify(document));
  assert.deepEqual(plain, document);
  const ajv = new Ajv2020({ strict: false });
  addFormats.default(ajv);
  ajv.addSchema(document, 'openapi');
  const operationIds: unknown[] = [];
  every(plain, ({ $ref, schema, operationId }) => {
    if (typeof $ref === 'string') assert.ok(ajv.getSchema(`openapi${$ref}`), $ref);
    if (typeof schema === 'object' && schema !== null)
      assert.ok(ajv.compile({ ...schema, $id: `x${Math.random()}`, components: document.components }));
    if (operationId !== undefined) operationIds.push(operationId);
  });
  assert.equal(new Set(operationIds).size, operationIds.length);
  for (const [path, operations] of Object.entries(document.paths)) {
    for (const operation of Object.values(operations)) {
      const named: string[] = [];
      every(operation.parameters, (parameter) => {
        if (parameter.in === 'path') named.push(String(parameter.name));
      });
      assert.deepEqual(
        named,
        [...path.matchAll(/\{(\w+)\}/g)].map((match) => match[1]),
      );
    }
  }
});

test('the envelopes of both streams are described event by event', () => {
  const names = (union: { readonly anyOf: readonly object[] }) =>
    union.anyOf.map((schema) => '$id' in schema && schema.$id);
  const [ofNotebook, ofAgent] = [names(NotebookStreamEventSchema), names(AgentStreamEventSchema)];
  assert.ok(ofNotebook.includes('CellOpEvent') && !ofNotebook.includes('TextDeltaEvent'));
  assert.ok(ofAgent.includes('TextDeltaEvent') && !ofAgent.includes('CellOpEvent'));
  const { examples: _, ...union }: Record<string, unknown> = {
    ...Object(document.components.schemas?.NotebookStreamEvent),
  };
  assert.deepEqual(union, {
    oneOf: ofNotebook.map((name) => ({ $ref: `#/components/schemas/${name}` })),
    discriminator: {
      propertyName: 'type',
      mapping: Object.fromEntries(
        NotebookStreamEventSchema.anyOf.map((schema) => [
          schema.properties.type?.const,
          `#/components/schemas/${'$id' in schema && schema.$id}`,
        ]),
      ),
    },
  });
});

test('the document is served to anyone, itself included', async (t) => {
  const server = await serve(t, routes);
  const answer = await send(server, '/api/v3/openapi.json', { headers: {} });
  assert.deepEqual(answer.json, document);
  assert.ok(document.paths['/api/v3/openapi.json']);
});

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

test('the check takes what is declared', () => {
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
    [{ type: 'cell-op', sessionId: 's', time, missed: false, data: { cellId: 'a' } }, /missed must be equal/],
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

test('the check refuses what is not declared', () => {
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
  assert.equal(typeof encodedJson, 'function');
});
