import assert from 'node:assert/strict';
import { networkInterfaces } from 'node:os';
import test, { type TestContext } from 'node:test';
import Type from 'typebox';
import { entriesOfThisMachine } from '#src/base/net/own-addresses.ts';
import { createClientAddresses } from '#src/http/edge/client-address.ts';
import { RequestLog } from '#src/http/edge/request-log.ts';
import { ok } from '#src/http/reply/reply.ts';
import { defineRoute } from '#src/http/route.ts';
import { type Answer, GOOD, JSON_BODY, send, serve } from './test-server.ts';
import { docs } from './thing-routes.ts';

const access = { action: 'thing.use' } as const;

/** Resolves after that time has passed on the clock that requests are measured with. */
async function pass(ms: number): Promise<void> {
  const until = performance.now() + ms;
  while (performance.now() < until) await new Promise(setImmediate);
}

const ROUTES = [
  defineRoute({
    ...docs,
    method: 'GET',
    path: '/things/:thingId',
    operationId: 'getThing',
    access,
    audited: true,
    handle: ({ remoteAddress }) => ok({ remoteAddress }),
  }),
  defineRoute({
    ...docs,
    method: 'POST',
    path: '/slow',
    operationId: 'slow',
    access,
    body: Type.Object({ ms: Type.Number() }),
    handle: async ({ body }) => {
      await pass(body.ms);
      return ok({});
    },
  }),
];

interface Line {
  readonly level: string;
  readonly fields: Readonly<Record<string, unknown>> & {
    readonly request: Readonly<Record<string, unknown>>;
  };
  readonly message: string;
}

async function startLogged(
  t: TestContext,
  { logsAll = false, slowMs = 0, trustedProxies = [] as readonly string[], sharesNetwork = false },
) {
  const lines: Line[] = [];
  const at = (level: string) => (fields: object, message: string) => {
    lines.push({ level, fields: fields as Line['fields'], message });
  };
  const log = { debug: at('debug'), info: at('info'), warn: at('warn') };
  const requestLog = new RequestLog({ log, logsAll, slowMs });
  return { lines, server: await serve(t, ROUTES, { requestLog, trustedProxies, sharesNetwork }) };
}

test('at level debug each request has a line with its operation, caller, status and duration', async (t) => {
  const { lines, server } = await startLogged(t, { logsAll: true });
  await send(server, '/things/a', { headers: { ...GOOD, 'x-request-id': 'mine' } });
  await send(server, '/things/a', { headers: {} });
  const [served, refused] = lines;
  const { durationMs, bytes, ...request } = served!.fields.request;
  assert.deepEqual(request, { method: 'GET', route: '/things/:thingId', status: 200, requestId: 'mine' });
  assert.ok(Number(durationMs) >= 0 && Number(bytes) > 0);
  const { workspaceId, userId, tokenId, address } = served!.fields;
  assert.deepEqual([workspaceId, userId, tokenId, address], ['ws_1', 'ada', 'tok_1', '127.0.0.1']);
  assert.deepEqual([refused!.level, refused!.fields.request.status], ['debug', 401]);
  assert.equal('userId' in refused!.fields, false);
});

const LOGGED = { requestId: 'mine', principal: undefined, remoteAddress: '', query: {} };
const SLOW_ROUTE = { method: 'POST', path: '/things' };

function logOf(nowMs: () => number, refusesAll = () => false) {
  const lines: unknown[] = [];
  const write = (fields: object, message: string) => {
    const { request, others } = fields as Line['fields'];
    lines.push([message, request.status, request.durationMs, ...(others === undefined ? [] : [others])]);
  };
  const log = { debug: write, info: write, warn: write };
  return { lines, log: new RequestLog({ log, logsAll: false, slowMs: 20, nowMs, refusesAll }) };
}

test('above level debug only requests that were slow on the server have a line', () => {
  const { lines, log } = logOf(() => 0);
  const outcome = { status: 200, bytes: 2, mayTakeLong: false, hasLeft: false };
  for (const ms of [0, 20, 21]) log.replied(SLOW_ROUTE, LOGGED, { ...outcome, ms });
  log.replied(SLOW_ROUTE, LOGGED, { ...outcome, ms: 100, mayTakeLong: true });
  log.replied(SLOW_ROUTE, { ...LOGGED, query: { wait: 30 } }, { ...outcome, ms: 100 });
  log.replied(SLOW_ROUTE, { ...LOGGED, query: { wait: 0 } }, { ...outcome, ms: 22 });
  assert.deepEqual(lines, [
    ['a request was slow', 200, 21],
    ['a request was slow', 200, 22],
  ]);
});

test('a limit logs at most one refused request a second, with the number of refusals since the last line', () => {
  const clock = { nowMs: 0 };
  const { lines, log } = logOf(() => clock.nowMs);
  const refuse = () =>
    log.replied(SLOW_ROUTE, LOGGED, {
      ms: 0,
      status: 429,
      bytes: 2,
      mayTakeLong: false,
      hasLeft: false,
    });
  for (let count = 0; count < 5; count++) refuse();
  clock.nowMs = 999;
  refuse();
  clock.nowMs = 1000;
  refuse();
  assert.deepEqual(lines, [
    ['a limit refused a request', 429, 0, 0],
    ['a limit refused a request', 429, 0, 5],
  ]);
});

test('a 503 about the state of the server, such as draining or only reading, is not logged as a refusal by a limit', () => {
  const phase = { refusesAll: true };
  const { lines, log } = logOf(
    () => 0,
    () => phase.refusesAll,
  );
  const answer = (path: string, status: number) =>
    log.replied({ method: 'GET', path }, LOGGED, {
      ms: 0,
      status,
      bytes: 2,
      mayTakeLong: false,
      hasLeft: false,
    });
  answer('/things', 503);
  phase.refusesAll = false;
  for (const path of ['/healthz', '/readyz']) answer(path, 503);
  assert.deepEqual(lines, []);
  answer('/things', 503);
  assert.deepEqual(lines, [['a limit refused a request', 503, 0, 0]]);
});

test('the line of a request includes the time of its handler', async (t) => {
  const { lines, server } = await startLogged(t, { slowMs: 100_000, logsAll: true });
  const body = JSON.stringify({ ms: 5 });
  await send(server, '/slow', { method: 'POST', headers: JSON_BODY, body });
  assert.ok(Number(lines[0]?.fields.request.durationMs) >= 5);
});

const addressIn = ({ json }: Answer) => (json as { remoteAddress: string }).remoteAddress;
const CHAINS: readonly (readonly [forwardedFor: string, client: string])[] = [
  ['', '127.0.0.1'],
  ['192.0.2.7', '192.0.2.7'],
  ['6.6.6.6, 192.0.2.7', '192.0.2.7'],
  ['6.6.6.6, 192.0.2.7, 10.1.2.3', '192.0.2.7'],
  ['10.1.2.3', '10.1.2.3'],
  ['192.0.2.7:4711', '192.0.2.7'],
  ['[2001:db8::1]:4711, 10.0.0.1', '2001:db8::1'],
  ['6.6.6.6, unknown', '127.0.0.1'],
  ['6.6.6.6, <script>, 10.0.0.1', '10.0.0.1'],
  [`6.6.6.6${', 10.0.0.1'.repeat(100)}`, '10.0.0.1'],
];
for (const [forwardedFor, client] of CHAINS) {
  const shown = forwardedFor.length > 60 ? `${forwardedFor.slice(0, 30)}…` : forwardedFor;
  test(`behind trusted proxies the client of "${shown}" is ${client}`, async (t) => {
    const { server } = await startLogged(t, { trustedProxies: ['127.0.0.1', '10.0.0.0/8'] });
    const headers = { ...GOOD, ...(forwardedFor === '' ? {} : { 'x-forwarded-for': forwardedFor }) };
    assert.equal(addressIn(await send(server, '/things/a', { headers })), client);
  });
}

test('a proxy that is not trusted cannot name another client', async (t) => {
  const { server } = await startLogged(t, { trustedProxies: ['10.0.0.0/8'] });
  const headers = { ...GOOD, 'x-forwarded-for': '192.0.2.7' };
  assert.equal(addressIn(await send(server, '/things/a', { headers })), '127.0.0.1');
});

test('while notebook code has the network of this machine, no address of the machine is a trusted proxy', async (t) => {
  const everybody = ['0.0.0.0/0', '::/0'];
  const { server } = await startLogged(t, { trustedProxies: everybody, sharesNetwork: true });
  const headers = { ...GOOD, 'x-forwarded-for': '192.0.2.7' };
  assert.equal(addressIn(await send(server, '/things/a', { headers })), '127.0.0.1');
  const { ofProxySocket } = createClientAddresses({ trusted: everybody, sharesNetwork: true });
  const clientOf = (chain: string) => ofProxySocket({} as never, { getHeader: () => chain } as never);
  for (const { address } of Object.values(networkInterfaces()).flatMap((all) => all ?? []))
    assert.equal(clientOf(`192.0.2.7, ${address}`), address, 'a notebook that connects to the proxy');
  assert.equal(clientOf('192.0.2.7, 198.51.100.1'), '192.0.2.7', 'proxies of other machines are trusted');
  assert.deepEqual(entriesOfThisMachine(['::1', '198.51.100.0/24', '127.0.0.0/8']), ['::1', '127.0.0.0/8']);
});

test('wrong tokens are counted for the client that a trusted proxy names', async (t) => {
  const { server } = await startLogged(t, { trustedProxies: ['127.0.0.1'] });
  const from = (client: string) => ({ ...GOOD, authorization: 'Bearer wrong', 'x-forwarded-for': client });
  // At once, because a client may try again after a while.
  const answers = await Promise.all(
    Array.from({ length: 60 }, () => send(server, '/things/a', { headers: from('192.0.2.7') })),
  );
  const statuses = new Set(answers.map(({ status }) => status).sort());
  assert.deepEqual([...statuses], [401, 429]);
  assert.equal((await send(server, '/things/a', { headers: from('192.0.2.8') })).status, 401);
});

test('a readiness check of a server that is not ready is not counted as a refusal', () => {
  const { lines, log } = logOf(() => 0);
  const route = { method: 'GET', path: '/readyz' };
  log.replied(route, LOGGED, { ms: 0, status: 503, bytes: 2, mayTakeLong: false, hasLeft: false });
  assert.deepEqual(lines, []);
});
