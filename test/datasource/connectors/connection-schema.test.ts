import assert from 'node:assert/strict';
import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import { fileURLToPath } from 'node:url';
import { Ajv2020 } from 'ajv/dist/2020.js';
import { AppError } from '#src/base/errors/errors.ts';
import { connectionSchemaDocument, parseConnection } from '#src/datasource/connectors/connection-schema.ts';
import { CONNECTORS } from '#src/datasource/connectors/registry.ts';

/** The document as clients receive it. */
const document = JSON.parse(JSON.stringify(connectionSchemaDocument));
const kinds: readonly { title: string; description: string; properties: object; examples: object[] }[] =
  document.oneOf;
const examples = kinds.flatMap((kind) => kind.examples);

/** Returns the violations of a connection; none when it is accepted. */
function violationsOf(connection: unknown): readonly { path: string; message: string }[] {
  try {
    parseConnection(connection);
    return [];
  } catch (error) {
    assert(error instanceof AppError);
    assert.equal(error.code, 'invalid_request');
    return error.extras.errors ?? [];
  }
}

test('the document is JSON Schema 2020-12 for every kind', () => {
  const ajv = new Ajv2020({ strict: false });
  assert.equal(document.$schema, 'https://json-schema.org/draft/2020-12/schema');
  assert.equal(ajv.validateSchema(document), true);
  assert.deepEqual(
    kinds.map(({ properties }) => Reflect.get(Reflect.get(properties, 'kind'), 'const')),
    [
      'postgres',
      'mysql',
      'mariadb',
      'clickhouse',
      'duckdb',
      'sqlite',
      'files',
      'snowflake',
      'bigquery',
      'mssql',
      'redshift',
      'databricks',
      'trino',
    ],
  );
});

test('every kind is tested with the rules of connectors', () => {
  const folder = fileURLToPath(new URL('../../../../test/datasource/connectors/', import.meta.url));
  const vendors = readdirSync(folder)
    .map((name) => readFileSync(join(folder, name), 'utf8'))
    .filter((text) => text.includes('conformance({'));
  const untested = CONNECTORS.filter(({ kind }) => !vendors.some((text) => text.includes(`'${kind}'`)));
  assert.deepEqual(
    untested.map(({ kind }) => kind),
    [],
  );
});

test('a postgres connection consists of exactly a connection string and a schema', () => {
  const [postgres] = kinds;
  assert.deepEqual(Object.keys(postgres?.properties ?? {}), ['kind', 'connection_string', 'schema']);
});

for (const { kind, schema, title } of CONNECTORS) {
  test(`${kind} is described with all its members, and its secrets are write-only`, () => {
    const { title: shown, additionalProperties }: Record<string, unknown> = { ...schema };
    assert.deepEqual([shown, additionalProperties], [title, false]);
    const members = Object.entries(JSON.parse(JSON.stringify(schema.properties)));
    for (const [name, member] of members) {
      if (name === 'kind') continue;
      const { title, description, writeOnly }: Record<string, unknown> = Object(member);
      assert(typeof title === 'string' && typeof description === 'string', name);
      const isSecret = /^(password|token|private_key|connection_string|service_account)$/.test(name);
      assert.equal(writeOnly === true, isSecret, name);
    }
    assert(kinds.some((one) => one.title === title && one.description.length > 10));
  });
}

for (const example of examples) {
  const kind = Reflect.get(example, 'kind');
  test(`the example of ${kind} is accepted, also by the schema document, and refused with an added or a missing member`, () => {
    const validate = new Ajv2020({ strict: false }).compile(document);
    assert.deepEqual(parseConnection(example), example);
    assert.equal(validate(example), true);
    for (const [name, value] of Object.entries(example)) {
      const { [name]: _, ...without }: Record<string, unknown> = { ...example };
      const mistyped = { ...example, [name]: typeof value === 'number' ? 'text' : 42 };
      for (const broken of [without, mistyped, { ...example, [name]: null }]) {
        assert.equal(violationsOf(broken)[0]?.path, `/connection/${name}`, name);
        assert.equal(validate(broken), false, name);
      }
    }
    const added = { ...example, unheard_of: 1 };
    assert.deepEqual(violationsOf(added), [
      { path: '/connection/unheard_of', message: 'is not expected here' },
    ]);
    assert.equal(validate(added), false);
  });
}

test('a value that is not a connection is refused with the place of the mistake', () => {
  for (const value of [undefined, null, 5, 'postgres', []]) {
    assert.deepEqual(violationsOf(value), [{ path: '/connection', message: 'must be object' }]);
  }
  assert.deepEqual(violationsOf({}), [{ path: '/connection/kind', message: 'is required' }]);
  for (const kind of ['oracle', '__proto__', 5]) {
    assert.deepEqual(violationsOf({ kind }), [
      {
        path: '/connection/kind',
        message: `must be one of ${CONNECTORS.map((one) => one.kind).join(', ')}`,
      },
    ]);
  }
});

test('violations never repeat a value', () => {
  const canary = 'canary-77aa';
  for (const example of examples) {
    for (const name of Object.keys(example)) {
      for (const value of [canary, [canary], { [name]: canary }, canary.repeat(10_000)]) {
        const broken = {
          ...example,
          [name]: value,
          port: canary,
          url: canary,
          path: `/${canary}`,
          tls: canary,
        };
        const text = JSON.stringify(violationsOf(broken).map(({ message }) => message));
        assert.equal(text.includes(canary), false, text);
      }
    }
  }
});

const SNOWFLAKE = {
  kind: 'snowflake',
  account: 'a-b',
  user: 'U',
  warehouse: 'W',
  database: 'D',
  schema: 'S',
};
const KEY = '-----BEGIN PRIVATE KEY-----\nx\n-----END PRIVATE KEY-----';
const MYSQL = { kind: 'mysql', host: 'h', port: 3306, database: 'd', user: 'u', password: '' };
const TRINO = { kind: 'trino', url: 'https://h', catalog: 'c', schema: 's', user: 'u' };

const REFUSED: readonly (readonly [why: string, connection: object, path: string, message: string])[] = [
  ['neither token nor key', SNOWFLAKE, '/token', 'is required, or private_key'],
  [
    'both token and key',
    { ...SNOWFLAKE, token: 't', private_key: KEY },
    '/token',
    'cannot be given together with private_key',
  ],
  ['an impossible port', { ...MYSQL, port: 0 }, '/port', 'must be >= 1'],
  [
    'a socket as the host',
    { ...MYSQL, host: '/run/mysqld.sock' },
    '/host',
    'does not have the required format',
  ],
  ['two hosts', { ...MYSQL, host: 'a,b' }, '/host', 'does not have the required format'],
  ...['😀', 'a\u2028b', 'a\u00a0b', '€'].map(
    (host) =>
      [
        `the host ${JSON.stringify(host)}, which the published pattern allows`,
        { ...MYSQL, host },
        '/host',
        'does not have the required format',
      ] as const,
  ),
  [
    'a no-break space in a URL, which the published pattern allows',
    { ...TRINO, url: 'https://h\u00a0/' },
    '/url',
    'does not have the required format',
  ],
  ['a zero byte in the user', { ...MYSQL, user: 'a\0b' }, '/user', 'does not have the required format'],
  ['an option of the driver', { ...MYSQL, socketPath: '/x' }, '/socketPath', 'is not expected here'],
  [
    'an invalid CA certificate',
    { ...MYSQL, ca_certificate: '-----BEGIN CERTIFICATE-----\nno' },
    '/ca_certificate',
    'must be certificates in PEM',
  ],
  ['a path in a URL', { ...TRINO, url: 'https://h/x' }, '/url', 'does not have the required format'],
  ['credentials in a URL', { ...TRINO, url: 'https://u:p@h' }, '/url', 'does not have the required format'],
  [
    'a password over plain http',
    { ...TRINO, url: 'http://h', password: 'p' },
    '/password',
    'is sent over https only, and the url is not',
  ],
  ...['../x', 'a/../../x', '/etc/passwd', 'file:/x', 'a\\b', 'a\0b', 'C:/x', 'https://x/y'].flatMap((path) =>
    ['duckdb', 'sqlite', 'files'].map(
      (kind) =>
        [
          `the path ${JSON.stringify(path)}`,
          { kind, path },
          '/path',
          'must be a relative path inside the files of the workspace',
        ] as const,
    ),
  ),
];

for (const [why, connection, path, message] of REFUSED) {
  test(`a ${Reflect.get(connection, 'kind')} connection with ${why} is refused`, () => {
    assert.deepEqual(violationsOf(connection), [{ path: `/connection${path}`, message }]);
  });
}
