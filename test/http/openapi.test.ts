import assert from 'node:assert/strict';
import test from 'node:test';
import { Ajv2020 } from 'ajv/dist/2020.js';
import addFormats from 'ajv-formats';
import Type from 'typebox';
import { AgentStreamEventSchema, NotebookStreamEventSchema } from '#src/contract/wire/events.ts';
import { createOpenApi } from '#src/http/openapi/document.ts';
import { noContent, ok } from '#src/http/reply/reply.ts';
import { defineRoute } from '#src/http/route.ts';
import { document, routes, tags, things } from './documented-things.ts';
import { auth, send, serve } from './test-server.ts';
import { use } from './thing-routes.ts';

function every(value: unknown, visit: (member: Readonly<Record<string, unknown>>) => void): void {
  if (typeof value !== 'object' || value === null) return;
  if (!Array.isArray(value)) visit(Object.fromEntries(Object.entries(value)));
  for (const member of Object.values(value)) every(member, visit);
}

test('an operation documents everything that its route does', () => {
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

test('an operation documents its own error codes and the codes of admission', () => {
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
    'read_only',
    'record_damaged',
    'role_too_low',
    'storage_full',
    'too_many_attempts',
    'unauthenticated',
    'unavailable',
    'unsupported_media_type',
  ]);
});

test('a named schema occurs once and is referenced everywhere else', () => {
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
    examples: [{ thingId: 'thingId', parts: [{ partId: 'partId' }] }],
  });
});

test('schemas of requests are closed and schemas of responses are open', () => {
  const { Part, PartOutput } = Object.fromEntries(Object.entries(document.components.schemas ?? {}));
  const member = { type: 'object', required: ['partId'], properties: { partId: { type: 'string' } } };
  assert.deepEqual(Part, { ...member, additionalProperties: false });
  assert.deepEqual(PartOutput, member);
});

test('a header is required if the handler refuses requests without it, and optional otherwise', () => {
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

test('pages and their files are not in the document', () => {
  const page = defineRoute({
    method: 'GET',
    path: '/things/',
    operationId: 'getThingsPage',
    summary: 's',
    tags,
    access: 'public',
    isUndocumented: true,
    responses: { 200: { description: 'd', contentType: 'text/html' } },
    handle: () => noContent(),
  });
  const made = createOpenApi([...things, page], { version: '1', requirements: auth.requirements });
  assert.equal(made.paths['/things/'], undefined);
  assert.ok(made.paths['/things']);
});

test('two schemas with one name are refused', () => {
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
    /Two different schemas have different names\. Broken by: PartOutput/,
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

test('the document is served without a token, and describes its own operation', async (t) => {
  const server = await serve(t, routes);
  const answer = await send(server, '/api/v3/openapi.json', { headers: {} });
  assert.deepEqual(answer.json, document);
  assert.ok(document.paths['/api/v3/openapi.json']);
});
