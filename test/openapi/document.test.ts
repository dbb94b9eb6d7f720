/** Rules that the whole OpenAPI document keeps, so that code generators understand it. */
import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import test from 'node:test';
import { Ajv2020 } from 'ajv/dist/2020.js';
import addFormats from 'ajv-formats';
import { CATALOGUE } from '#src/base/errors/errors.ts';
import { FAILURES } from '#src/base/errors/failures.ts';
import { SECRET_NAME } from '#src/contract/wire/notebook.ts';
import { SIGN_IN_OPERATIONS } from '#src/contract/wire/operations/sign-in.ts';
import { OPERATIONS } from '#src/contract/wire/operations/table.ts';
import { EmptyBodySchema } from '#src/contract/wire/shape.ts';
import { CONNECTORS } from '#src/datasource/connectors/registry.ts';
import { withClosedSchemas } from '#test/support/openapi-check.ts';
import type { RawRequest } from '#test/support/raw-request.ts';
import { longSentencesOf } from '#test/support/sentences.ts';
import { startServer } from '#test/support/server-fixture.ts';
import {
  asObject,
  bodySchemaOf,
  everyObject,
  type Json,
  operationsOf,
  readDocument,
  resolved,
} from './real-document.ts';

const server = await startServer(test);
const document = await readDocument(server);
const operations = operationsOf(document);
const schemas = asObject(document.components.schemas);
const ajv = new Ajv2020({ strict: false });
addFormats.default(ajv);
ajv.addSchema(document, 'openapi');

/** Returns the schemas of an operation's responses, without those of problems. */
function responseSchemasOf({ operation }: (typeof operations)[number]): Json[] {
  return Object.values(asObject(operation.responses)).flatMap((response) =>
    Object.entries(asObject(asObject(response).content)).flatMap(([type, media]) =>
      type.endsWith('/json') || type === 'text/event-stream' ? [asObject(asObject(media).schema)] : [],
    ),
  );
}

/** Returns the names of the components that a value refers to, directly and through other components. */
function reachableFrom(value: unknown, found = new Set<string>()): Set<string> {
  everyObject(value, ({ $ref }) => {
    const name = String($ref ?? '').replace('#/components/schemas/', '');
    if (name === '' || found.has(name)) return;
    found.add(name);
    reachableFrom(schemas[name], found);
  });
  return found;
}

/** Returns whether the body is bytes in place of JSON. */
function takesBytes({ operation }: (typeof operations)[number]): boolean {
  return JSON.stringify(operation.requestBody ?? {}).includes('application/octet-stream');
}

test('every request body is a named component with an example that its schema and the server accept', async () => {
  const bodies = operations.filter((one) => one.operation.requestBody !== undefined && !takesBytes(one));
  assert.ok(bodies.length > 15);
  for (const one of bodies) {
    const schema = bodySchemaOf(one);
    assert.match(String(schema?.$ref), /^#\/components\/schemas\/[A-Z]\w+$/, one.path);
    const { examples } = resolved(document, schema ?? {});
    assert.ok(Array.isArray(examples) && examples.length > 0, `${String(schema?.$ref)} has no example`);
    for (const example of examples) {
      assert.ok(ajv.validate(`openapi${String(schema?.$ref)}`, example), ajv.errorsText());
      const path = one.path.replace(/\{\w+\}/g, 'placeholder');
      const { status, body } = await server.request(one.method.toUpperCase(), path, {
        headers: { 'Service-Session-Id': 'placeholder' },
        body: JSON.stringify(example),
      });
      const { code } = asObject(body);
      assert.ok(status < 500 && code !== 'invalid_request', `${one.path}: ${JSON.stringify(body)}`);
    }
  }
});

test('every JSON response has an example that its schema accepts, even if the schema forbids further members', () => {
  const strict = new Ajv2020({ strict: false });
  addFormats.default(strict);
  strict.addSchema(withClosedSchemas(document), 'openapi');
  for (const one of operations)
    for (const schema of responseSchemasOf(one)) {
      const { examples } = resolved(document, schema);
      assert.ok(Array.isArray(examples) && examples.length > 0, `${one.path} ${JSON.stringify(schema)}`);
      for (const example of examples) {
        const place = '$ref' in schema ? `openapi${String(schema.$ref)}` : schema;
        assert.ok(strict.validate(place, example), `${one.path}: ${strict.errorsText()}`);
      }
    }
});

test('a choice of words is an enum, and an object with free member names has additionalProperties', () => {
  everyObject(document, ({ anyOf, oneOf, patternProperties }, pointer) => {
    assert.equal(patternProperties, undefined, pointer);
    for (const choice of [anyOf, oneOf])
      if (Array.isArray(choice)) assert.ok(choice.filter((one) => 'const' in one).length < 2, pointer);
  });
});

test('every variant of a union of objects is a component, and the distinguishing constant is the discriminator', () => {
  let unions = 0;
  everyObject(document, ({ anyOf, oneOf, discriminator }, pointer) => {
    const variants: readonly Json[] = [anyOf, oneOf].find((choice) => Array.isArray(choice)) ?? [];
    const objects = variants.filter((one) => resolved(document, one).type === 'object');
    if (objects.length < 2) return;
    for (const one of objects) assert.ok('$ref' in one, pointer);
    const tags = objects.map((one) => {
      const members = Object.entries(asObject(resolved(document, one).properties));
      return members.find(([, member]) => 'const' in asObject(member))?.[0];
    });
    if (tags.includes(undefined)) return;
    unions++;
    const { propertyName, mapping } = asObject(discriminator);
    assert.deepEqual([propertyName, new Set(tags)], [tags[0], new Set([tags[0]])], pointer);
    assert.deepEqual(
      Object.values(asObject(mapping)),
      objects.map(({ $ref }) => $ref),
      pointer,
    );
  });
  assert.ok(unions >= 6);
});

test('schemas of responses allow further members, and schemas of requests do not', () => {
  const received = reachableFrom(operations.map(responseSchemasOf));
  for (const name of received) {
    assert.notEqual(asObject(schemas[name]).additionalProperties, false, name);
  }
  const sent = reachableFrom(operations.map((one) => bodySchemaOf(one) ?? {}));
  for (const name of sent) {
    const { type, additionalProperties } = asObject(schemas[name]);
    if (type === 'object') assert.equal(additionalProperties, false, name);
  }
});

test('a connection is the union of all kinds, with `kind` as discriminator', () => {
  const { discriminator, oneOf } = asObject(schemas.DatasourceConnection);
  const kinds = CONNECTORS.map(({ kind }) => kind);
  assert.deepEqual(Object.keys(asObject(asObject(discriminator).mapping)), kinds);
  assert.equal(Array.isArray(oneOf) && oneOf.length, kinds.length);
  assert.deepEqual(asObject(schemas.NewDatasource).properties, {
    ...asObject(asObject(schemas.NewDatasource).properties),
    connection: { $ref: '#/components/schemas/DatasourceConnection' },
  });
});

test('the operations that stream refer to the schema of every event, and every component is used', () => {
  for (const [path, event] of [
    ['/api/v3/notebook-sessions/{sessionId}/events', 'CellOpEvent'],
    ['/api/v3/agent-sessions/{sessionId}/events', 'TextDeltaEvent'],
  ] as const) {
    assert.ok(reachableFrom(document.paths[path]).has(event), path);
  }
  const used = reachableFrom(document.paths);
  for (const name of Object.keys(schemas)) assert.ok(used.has(name), `${name} is not used`);
});

test('every 429, 503 and 507 has Retry-After, every tag has a description, and no parameter belongs to the transport', () => {
  for (const { path, operation } of operations) {
    for (const [status, response] of Object.entries(asObject(operation.responses))) {
      const { 'Retry-After': retryAfter } = asObject(asObject(response).headers);
      if (['429', '503', '507'].includes(status)) assert.equal(asObject(retryAfter).required, true, path);
    }
    const names = (Array.isArray(operation.parameters) ? operation.parameters : []).map(({ name }) => name);
    for (const name of names) assert.doesNotMatch(name, /^(host|x-forwarded-|authorization)/i, path);
  }
  const tags: readonly Json[] = Array.isArray(document.tags) ? document.tags : [];
  for (const { name, description } of tags) assert.equal(typeof description, 'string', String(name));
});

test('every code of an error and of a failed run is listed, but the codes are not an enum', () => {
  const { Problem, ErrorCode, Failure, FailureCode } = schemas;
  for (const [schema, name] of [
    [Problem, 'ErrorCode'],
    [Failure, 'FailureCode'],
  ] as const) {
    const { code } = asObject(asObject(schema).properties);
    assert.deepEqual(code, { $ref: `#/components/schemas/${name}` });
  }
  for (const [schema, codes] of [
    [ErrorCode, Object.keys(CATALOGUE)],
    [FailureCode, Object.keys(FAILURES)],
  ] as const) {
    const { enum: closed, 'x-extensible-enum': listed, description } = asObject(schema);
    assert.deepEqual([closed, listed], [undefined, codes]);
    for (const code of codes) assert.ok(String(description).includes(`\`${code}\`: `), code);
  }
});

test('a header is required if its route needs it', () => {
  const { parameters } = document.paths['/api/cee/kernel/execute']?.post ?? {};
  const named = Array.isArray(parameters) ? parameters : [];
  assert.equal(named.find(({ name }) => name === 'Service-Session-Id')?.required, true);
});

/** The documented operations of the table that need no body. */
const BODILESS = Object.values(OPERATIONS).filter(
  (one) => 'body' in one && one.body === EmptyBodySchema && !(one.operationId in SIGN_IN_OPERATIONS),
);

test('the document shows no body for an operation that needs none, and a required body for every other operation', () => {
  assert.ok(BODILESS.length >= 8);
  const ids = new Set<unknown>(BODILESS.map(({ operationId }) => operationId));
  for (const { operation } of operations) {
    const { operationId, requestBody } = operation;
    if (ids.has(operationId)) assert.equal(requestBody, undefined, String(operationId));
    else if (requestBody !== undefined)
      assert.equal(asObject(requestBody).required, true, String(operationId));
  }
  assert.equal(schemas.EmptyBody, undefined);
});

test('an operation that needs no body accepts an empty object or no body, with any content type, and checks every other body', async () => {
  for (const { method, path } of BODILESS) {
    const refusalOf = async (request: RawRequest) => {
      const { status, body } = await server.request(method, path.replace(/:\w+/g, 'placeholder'), request);
      return status < 400 ? undefined : asObject(body).code;
    };
    const OF_BODY = ['invalid_request', 'malformed_json', 'unsupported_media_type'];
    for (const request of [
      {},
      { headers: { 'content-length': '0' } },
      { headers: { 'content-type': 'application/json' } },
      { headers: { 'content-type': 'text/plain;charset=UTF-8' } },
      { headers: { 'transfer-encoding': 'chunked' } },
      { body: {} },
    ])
      assert.ok(!OF_BODY.includes(String(await refusalOf(request))), `${path} ${JSON.stringify(request)}`);
    assert.equal(await refusalOf({ body: { other: 1 } }), 'invalid_request', path);
    assert.equal(
      await refusalOf({ body: 'x', headers: { 'content-type': 'text/plain' } }),
      'unsupported_media_type',
    );
  }
});

test('no parameter is X-Request-Id, and If-None-Match is a parameter only for reading and creating', () => {
  const having = (wanted: string) =>
    operations.flatMap(({ method, path, operation }) =>
      (Array.isArray(operation.parameters) ? operation.parameters : []).some(({ name }) => name === wanted)
        ? [`${method} ${path}`]
        : [],
    );
  assert.deepEqual(having('X-Request-Id'), []);
  const writes = having('If-None-Match').filter((operation) => !operation.startsWith('get '));
  assert.deepEqual(writes, ['put /api/v3/files/{path}']);
});

test('the data of every event is a named component, and no boolean is a constant', () => {
  let events = 0;
  for (const [name, schema] of Object.entries(schemas)) {
    const { type, data } = asObject(asObject(schema).properties);
    if (!name.endsWith('Event') || !('const' in asObject(type))) continue;
    events++;
    assert.match(String(asObject(data).$ref), /^#\/components\/schemas\/[A-Z]\w+$/, name);
  }
  assert.ok(events > 20);
  everyObject(document, ({ const: constant }, pointer) => {
    assert.notEqual(typeof constant, 'boolean', pointer);
  });
});

test('outputs of runs, consoles and events have one schema, with data or assetId', () => {
  const Output = { $ref: '#/components/schemas/Output' };
  const { outputs, console } = asObject(asObject(schemas.CellResult).properties);
  assert.deepEqual([asObject(outputs).items, asObject(console).items], [Output, Output]);
  const { output } = asObject(asObject(schemas.CellOpData).properties);
  assert.deepEqual(output, { anyOf: [Output, { type: 'null' }] });
});

test('no two members of a schema have the same name in the generators of other languages', () => {
  everyObject(document, ({ properties }, pointer) => {
    const names = Object.keys(asObject(properties)).map((name) => name.replaceAll('_', '').toLowerCase());
    assert.equal(new Set(names).size, names.length, pointer);
  });
});

test('the documentation names every path outside of /api/v3', () => {
  const text = readFileSync('docs/api.md', 'utf8');
  const outside = Object.values(OPERATIONS)
    .map(({ path }): string => path.replace(/:.*/, ''))
    .filter((path) => !path.startsWith('/api/v3'));
  assert.deepEqual(
    outside.filter((path) => !text.includes(`${path}\``)),
    [],
  );
});

test('the name of a secret has its pattern in the document', () => {
  const secrets = operations.filter(({ path }) => path.endsWith('/secrets/{name}'));
  assert.equal(secrets.length, 2);
  for (const { operation } of secrets) {
    const parameters = (operation.parameters as readonly Json[]).map(asObject);
    const name = parameters.find((one) => one.name === 'name');
    assert.equal(asObject(name?.schema).pattern, SECRET_NAME);
  }
});

test('no sentence of the document has more than 30 words', () => {
  const long = new Set<string>();
  everyObject(document, ({ summary, description }, pointer) => {
    for (const text of [summary, description]) {
      if (typeof text !== 'string') continue;
      for (const sentence of text.split('\n').flatMap(longSentencesOf)) long.add(`${pointer}: ${sentence}`);
    }
  });
  assert.deepEqual([...long], []);
});
