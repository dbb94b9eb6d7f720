import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import { test } from 'node:test';
import { fileURLToPath } from 'node:url';
import { inspect } from 'node:util';
import { Secret } from '#src/base/caller/secret.ts';
import { openLog } from '#src/base/log/log.ts';

const CANARY = 'canary-4f1d2b';

/** Returns a log in memory; `lines` returns the written lines, parsed and without the time. */
function capture(level: 'info' | 'debug' = 'info', secrets: readonly Secret[] = []) {
  const written: string[] = [];
  const log = openLog({ level, secrets, destination: { write: (line) => written.push(line) } });
  const lines = () =>
    written.map((line) => {
      const { time, ...rest } = JSON.parse(line);
      assert.match(time, /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$/);
      return rest;
    });
  return { log, written, lines };
}

test('an event is one JSON line with level, time, fields and message', () => {
  const { log, written, lines } = capture();
  log.info({ port: 8787, nothing: undefined }, 'listening\non two lines');
  assert.equal(written.length, 1);
  assert.equal(written[0]!.indexOf('\n'), written[0]!.length - 1);
  assert.deepEqual(lines(), [{ level: 'info', port: 8787, msg: 'listening\non two lines' }]);
});

test('a child log writes its fields on every line, and its own children add further fields', () => {
  const { log, lines } = capture();
  const request = log.child({ requestId: 'req_1' });
  request.child({ workspaceId: 'ws_1' }).warn({ ms: 12 }, 'slow');
  request.info({}, 'done');
  assert.deepEqual(lines(), [
    { level: 'warn', requestId: 'req_1', workspaceId: 'ws_1', ms: 12, msg: 'slow' },
    { level: 'info', requestId: 'req_1', msg: 'done' },
  ]);
});

test('lines below the level are not written', () => {
  const { log, lines } = capture('info');
  log.debug({}, 'hidden');
  log.child({ a: 1 }).trace({}, 'hidden');
  log.error({}, 'shown');
  assert.deepEqual(lines(), [{ level: 'error', msg: 'shown' }]);
});

test('an error shows type, code, message, stack and cause, and no other members', () => {
  const { log, lines } = capture();
  const cause = Object.assign(new TypeError('refused'), { code: 'ECONNREFUSED', address: CANARY });
  const error = Object.assign(new Error('no answer', { cause }), { requestBodyValues: { prompt: CANARY } });
  log.error({ err: error }, 'the model failed');
  assert.deepEqual(lines(), [
    {
      level: 'error',
      err: {
        type: 'Error',
        message: 'no answer',
        stack: error.stack,
        cause: { type: 'TypeError', code: 'ECONNREFUSED', message: 'refused', stack: cause.stack },
      },
      msg: 'the model failed',
    },
  ]);
});

test('a request shows only the permitted members', () => {
  const { log, lines } = capture();
  const request = { method: 'POST', path: '/api/v3/notebooks', status: 201, body: CANARY, query: CANARY };
  log.info({ request: { ...request, headers: { authorization: CANARY } } }, 'request');
  assert.deepEqual(lines(), [
    { level: 'info', request: { method: 'POST', path: '/api/v3/notebooks', status: 201 }, msg: 'request' },
  ]);
});

test('a planted secret at any place in the fields is not written', () => {
  const { log, written } = capture('info', [new Secret(CANARY)]);
  const named = {
    authorization: `Bearer ${CANARY}`,
    password: CANARY,
    apiKey: CANARY,
    api_key: CANARY,
    accessToken: CANARY,
    connection: { kind: 'postgres', connection_string: CANARY },
    nested: [{ deeper: { clientSecret: CANARY, wrapped: new Secret(CANARY) } }],
    text: `seen ${CANARY} in passing`,
    bytes: Buffer.from(CANARY),
    map: new Map([['x', CANARY]]),
  };
  log.info(named, `message with ${CANARY}`);
  log.child(named).error({ err: new Error(`cannot use ${CANARY}`, { cause: CANARY }) }, 'x');
  assert.equal(written.length, 2);
  for (const line of written) assert.equal(line.includes(CANARY), false, line);
});

test('unknown credentials are removed from text by their form', () => {
  const { log, lines } = capture();
  log.info(
    { url: 'postgres://ada:s3cret@db/x', header: 'Bearer abcdefghijkl' },
    'dsn host=db password=hunter22',
  );
  log.info({ found: `trp_${'a'.repeat(43)}`, key: 'sk-ant-api03-abcdefghijklmnop' }, 'x');
  assert.deepEqual(lines(), [
    {
      level: 'info',
      url: 'postgres://[secret]@db/x',
      header: 'Bearer [secret]',
      msg: 'dsn host=db password=[secret]',
    },
    { level: 'info', found: '[secret]', key: '[secret]', msg: 'x' },
  ]);
});

test('values that JSON does not have do not break a line', () => {
  const { log, lines } = capture();
  const circle: Record<string, unknown> = {};
  circle.self = circle;
  log.info({ circle, big: 10n, when: new Date(0), run: () => 1 }, 'odd');
  const [line] = lines();
  assert.equal(line.big, '10');
  assert.equal(line.when, '1970-01-01T00:00:00.000Z');
  assert.equal('run' in line, false);
});

test('everything that was logged is written when the process exits', () => {
  const module = fileURLToPath(import.meta.resolve('#src/base/log/log.ts'));
  const program = `
    import { openLog } from ${JSON.stringify(module)};
    const log = openLog({ level: 'info' });
    for (let n = 0; n < 5000; n++) log.info({ n }, 'line');
    process.exit(3);`;
  const child = spawnSync(process.execPath, ['--input-type=module', '-e', program], { encoding: 'utf8' });
  const numbers = child.stdout
    .trimEnd()
    .split('\n')
    .map((line) => JSON.parse(line).n);
  assert.deepEqual([child.status, child.stderr, numbers.length, numbers.at(-1)], [3, '', 5000, 4999]);
});

test('a secret is shown only by reveal()', () => {
  const secret = new Secret(CANARY);
  const shown = [
    `${secret}`,
    JSON.stringify({ secret }),
    inspect({ secret }),
    structuredClone({ ...secret }),
  ];
  assert.deepEqual(shown, ['[secret]', '{"secret":"[secret]"}', '{ secret: [secret] }', {}]);
  assert.equal(secret.reveal(), CANARY);
});

test('a hundred lines of one kind of warning are written in ten seconds, and one further line gives the number left out', (t) => {
  t.mock.timers.enable({ apis: ['setTimeout'] });
  const { log, lines } = capture();
  const child = log.child({ requestId: 'req_1' });
  for (let n = 0; n < 150; n++) (n % 2 === 0 ? log : child).warn({ n }, 'a stranger knocked');
  log.error({}, 'something else');
  assert.equal(lines().length, 101);
  t.mock.timers.tick(10_000);
  assert.deepEqual(lines().at(-1), { level: 'warn', leftOut: 50, msg: 'a stranger knocked' });
  for (let n = 0; n < 150; n++) log.info({ n }, 'served');
  assert.equal(lines().length, 252, 'lines of what the server does by itself are not limited');
});
