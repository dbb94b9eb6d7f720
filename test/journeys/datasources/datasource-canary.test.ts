// own process: it reads the memory of this process
/**
 * Every kind of connection contains a secret. It is entered in every possible place, and searched
 * for in every place where it could leak.
 */
import assert from 'node:assert/strict';
import { readdirSync, readFileSync } from 'node:fs';
import test from 'node:test';
import { filesBelow } from '#test/support/living-files.ts';
import { openNotebook } from '#test/support/notebook-fixture.ts';
import { memoryHas } from '#test/support/process-memory.ts';
import { processSeenAs } from '#test/support/processes.ts';
import { startServer } from '#test/support/server-fixture.ts';

/** Written in two halves, so that no other process has the whole text in its source. */
const CANARY = ['canary', '7d20b6e4'].join('-');
const server = await startServer(test);
const answers: string[] = [];

interface Kind {
  readonly properties: Readonly<Record<string, { readonly const?: string; readonly writeOnly?: boolean }>>;
  readonly examples: readonly Readonly<Record<string, unknown>>[];
}
const { body: schema } = await server.request('GET', '/api/v3/datasource-connections/schema');
const kinds: readonly Kind[] = Object(schema).oneOf;

/** No server listens there. */
const NOWHERE = '127.0.0.1:1';
const KEY = `-----BEGIN PRIVATE KEY-----\n${CANARY}\n-----END PRIVATE KEY-----`;

/**
 * Returns the example of a kind of connection, with an address of this machine where no server
 * listens, and with the canary in place of each secret.
 */
function connectionOf({ properties, examples }: Kind): Record<string, unknown> {
  const connection: Record<string, unknown> = { ...examples[0] };
  for (const name of Object.keys(connection)) {
    if (properties[name]?.writeOnly !== true) continue;
    if (name === 'connection_string') connection[name] = `postgresql://someone:${CANARY}@${NOWHERE}/db`;
    else if (name === 'service_account')
      connection[name] = { ...Object(connection[name]), client_email: 'a@b.example', private_key: KEY };
    else connection[name] = name === 'private_key' ? KEY : CANARY;
  }
  const secrets = Object.keys(properties).filter((name) => properties[name]?.writeOnly === true);
  if (secrets[0] !== undefined && !secrets.some((name) => name in connection))
    connection[secrets[0]] = CANARY;
  if ('host' in properties) Object.assign(connection, { host: '127.0.0.1' });
  if ('port' in properties) Object.assign(connection, { port: 1 });
  if ('url' in properties) Object.assign(connection, { url: `https://${NOWHERE}` });
  return connection;
}

const connections = kinds.map(connectionOf);
const withSecrets = connections.filter((one) => JSON.stringify(one).includes(CANARY));

async function request(method: string, path: string, body?: unknown) {
  // With a key, because a record for retries must not contain it either.
  const headers = method === 'POST' ? { 'idempotency-key': `key-${answers.length}` } : {};
  const answer = await server.request(method, path, body === undefined ? {} : { body, headers });
  answers.push(answer.text, JSON.stringify(answer.headers));
  return answer;
}

const slugOf = (connection: object) => `of-${Reflect.get(connection, 'kind')}`;
const notebook = await openNotebook(server, {}, { datasourceSlugs: connections.map(slugOf) });
const events = await notebook.events();

test('every kind of connection with credentials is tested', () => {
  const kindsWithout = connections.filter((one) => !withSecrets.includes(one)).map(({ kind }) => kind);
  assert.deepEqual(kindsWithout, ['duckdb', 'sqlite', 'files']);
});

for (const connection of connections) {
  const slug = slugOf(connection);
  test(`${connection.kind}: created, replaced, tested in every way, and queried without success`, async () => {
    const post = (path: string, body: object) => request('POST', path, body);
    assert.equal((await post('/api/v3/datasources', { slug, connection })).status, 201);
    assert.equal((await request('PUT', `/api/v3/datasources/${slug}`, { connection })).status, 200);
    const failing = [
      await post('/api/v3/datasources', { slug: `${slug}-tested`, connection, testConnection: true }),
      await request('PUT', `/api/v3/datasources/${slug}`, { connection, testConnection: true }),
      await post(`/api/v3/datasources/${slug}/test`, {}),
      await post('/api/v3/datasource-connections/test', { connection }),
    ];
    for (const { status, body } of failing) assert.deepEqual([status, Object(body).ok], [400, false]);
    const code = `from troupe import datasource\ndatasource("${slug}").execute("select '${slug}'")`;
    const asked = await server.request('POST', '/api/cee/kernel/execute', {
      body: { code },
      headers: { 'service-session-id': notebook.id },
    });
    answers.push(asked.text);
    assert.equal(Object(asked.body).success, false);
    for (const wrong of [
      { ...connection, unheard_of: CANARY },
      { ...connection, kind: CANARY },
    ]) {
      assert.equal((await post('/api/v3/datasources', { slug: 'wrong', connection: wrong })).status, 400);
    }
  });
}

test('no response, audit entry or metadata contains the canary', async () => {
  await request('GET', '/api/v3/audit?limit=100');
  await request('GET', '/api/v3/datasources?limit=100');
  await request('GET', '/api/v3/actors');
  assert(answers.length > connections.length * 14);
  for (const text of answers) assert.equal(text.includes(CANARY), false, text);
});

test('no event contains the canary', () => {
  const seen = JSON.stringify(events.events);
  assert(seen.includes('Error'), 'the failures of the queries are among the events');
  assert.equal(seen.includes(CANARY), false);
});

test('no log line contains the canary', () => {
  assert.equal(JSON.stringify(server.log).includes(CANARY), false);
});

test('no file of the data directory contains the canary', () => {
  const files = filesBelow(server.dataDir);
  assert(files.size > 2);
  for (const [path, bytes] of files) assert.equal(bytes.includes(CANARY), false, path);
});

test('no command line and no environment of any process contains the canary', () => {
  let seen = 0;
  for (const pid of readdirSync('/proc').filter((name) => /^\d+$/.test(name))) {
    for (const file of ['cmdline', 'environ']) {
      try {
        const text = readFileSync(`/proc/${pid}/${file}`);
        seen++;
        assert.equal(text.includes(CANARY), false, `${file} of ${pid}`);
      } catch (error) {
        if (error instanceof assert.AssertionError) throw error; // other processes are gone, or may not be read
      }
    }
  }
  assert(seen > 2);
});

test('the memory of the kernel that ran the query does not contain the canary', async () => {
  const witness = ['witness', '10be77'].join('-');
  const { body } = await server.request('POST', '/api/cee/kernel/execute', {
    body: {
      code: `import builtins, os\nbuiltins.kept = "${witness}"\nprint(os.getpid(), os.readlink("/proc/self/ns/pid"))`,
    },
    headers: { 'service-session-id': notebook.id },
  });
  const [seenAs, namespace] = String(Object(body).stdout).trim().split(' ');
  const { pid } = processSeenAs(Number(seenAs), String(namespace))!;
  assert.notEqual(memoryHas(pid, witness), false, 'what is there is found');
  assert.notEqual(memoryHas(pid, CANARY), true);
});

test('every example with a member removed, added or mistyped returns 400 with the path', async () => {
  for (const { examples } of kinds) {
    for (const example of examples) {
      for (const [name, value] of Object.entries(example)) {
        const { [name]: _, ...without } = example;
        const mistyped = { ...example, [name]: typeof value === 'number' ? 'text' : 42 };
        for (const [broken, path] of [
          [without, `/connection/${name}`],
          [mistyped, `/connection/${name}`],
          [{ ...example, [`${name}_`]: value }, `/connection/${name}_`],
        ] as const) {
          const { status, body } = await server.request('POST', '/api/v3/datasource-connections/test', {
            body: { connection: broken },
          });
          const paths = Object(body).errors?.map((error: { path: string }) => error.path);
          assert.equal(status, 400);
          assert(paths?.includes(path), `${JSON.stringify(broken)}: ${paths}`);
        }
      }
    }
  }
});
