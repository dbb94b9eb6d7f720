/** Signing in with the command line: the requests of the program, and those of the page on which a person confirms it. */
import assert from 'node:assert/strict';
import test from 'node:test';
import { addMember } from '#test/support/members.ts';
import { eventually } from '#test/support/processes.ts';
import { OWNER, startServer } from '#test/support/server-fixture.ts';

const server = await startServer(test);
const { baseUrl } = server;

interface Begun {
  readonly secret: string;
  readonly code: string;
  readonly url: string;
}

function send(path: string, body: unknown, headers: Record<string, string> = {}): Promise<Response> {
  return fetch(baseUrl + path, {
    method: 'POST',
    headers: { 'content-type': 'application/json', origin: baseUrl, ...headers },
    body: JSON.stringify(body),
  });
}

async function signIn(token: string): Promise<Record<string, string>> {
  const response = await send('/sign-in', {}, { authorization: `Bearer ${token}` });
  assert.equal(response.status, 204);
  return {
    cookie: response.headers.get('set-cookie')!.split(';')[0]!,
    'service-workspace-id': OWNER.workspaceId,
  };
}

async function begin(machine = 'ada@laptop'): Promise<Begun> {
  const response = await send('/sign-in/command-line', { machine });
  assert.equal(response.status, 201);
  return (await response.json()) as Begun;
}

const decide = (code: string, session: Record<string, string>, confirm = true) =>
  send(`/sign-in/command-line/${code}`, { confirm }, session);

async function outcome(secret: string): Promise<{ status: string; token?: string; userId?: string }> {
  const response = await send('/sign-in/command-line/token', { secret });
  assert.equal(response.status, 200);
  return (await response.json()) as { status: string; token?: string };
}

test('a program gets a token of the person who confirms its code, once, and the audit records it', async () => {
  const ada = await addMember(server, 'ada', 'editor');
  const session = await signIn(ada.token);
  const { secret, code, url } = await begin();
  assert.equal(url, `${baseUrl}/sign-in?command-line`);
  assert.match(code, /^[BCDFGHJKLMNPQRSTVWXZ]{4}-[BCDFGHJKLMNPQRSTVWXZ]{4}$/);
  assert.deepEqual(await outcome(secret), { status: 'waiting' });
  const typed = code.toLowerCase().replace('-', '');
  const shown = await fetch(`${baseUrl}/sign-in/command-line/${typed}`, { headers: session });
  const { machine, address } = (await shown.json()) as { machine: string; address: string };
  assert.deepEqual([shown.status, machine, address], [200, 'ada@laptop', '127.0.0.1']);
  assert.equal((await decide(typed, session)).status, 204);
  const { status, token = '', userId } = await outcome(secret);
  assert.deepEqual([status, userId], ['confirmed', 'ada']);
  const me = await server.clientOf({ token, workspaceId: OWNER.workspaceId }).me();
  assert.deepEqual([me.user.id, me.token.name], ['ada', 'Command line on ada@laptop']);
  assert.equal(me.token.workspaceId, OWNER.workspaceId, 'a token is bound as the session is');
  assert.deepEqual(await outcome(secret), { status: 'ended' });
  assert.equal((await decide(code, session)).status, 404);
  await eventually('the audit has both', async () => {
    const { items } = await server.client.audit({ limit: 100 });
    const actions = items.filter((entry) => entry.userId === 'ada').map(({ action }) => action);
    return actions.includes('command-line.confirm') && actions.includes('token.create');
  });
});

test('one of fifty simultaneous confirmations counts, and one of fifty requests for its token succeeds', async () => {
  const session = await signIn(OWNER.token);
  const { secret, code } = await begin();
  const fifty = Array.from({ length: 50 });
  const before = (await server.client.accessTokens.list({ limit: 100 })).items.length;
  const answers = await Promise.all(fifty.map(() => decide(code, session)));
  const statuses = answers.map(({ status }) => status);
  assert.equal(statuses.filter((status) => status === 204).length, 1);
  assert.ok(statuses.every((status) => [204, 404, 429].includes(status)));
  const outcomes = await Promise.all(fifty.map(() => outcome(secret)));
  assert.equal(outcomes.filter(({ token }) => token !== undefined).length, 1);
  assert.equal(outcomes.filter(({ status }) => status === 'ended').length, 49);
  assert.equal((await server.client.accessTokens.list({ limit: 100 })).items.length, before + 1);
});

test('a program that was refused gets no token, even if somebody confirms the sign-in later', async () => {
  const session = await signIn(OWNER.token);
  const { secret, code } = await begin();
  assert.equal((await decide(code, session, false)).status, 204);
  assert.ok([404, 429].includes((await decide(code, session)).status));
  assert.deepEqual(await outcome(secret), { status: 'refused' });
  assert.deepEqual(await outcome(secret), { status: 'ended' });
});

test('no token is created when the browser session of the confirmation has ended since', async () => {
  const session = await signIn(OWNER.token);
  const { secret, code } = await begin();
  assert.equal((await decide(code, session)).status, 204);
  assert.equal((await send('/sign-out', {}, session)).status, 200);
  assert.deepEqual(await outcome(secret), { status: 'ended' });
});

test('a sign-in is confirmed only by a page of this server, in the name of a person who has signed in', async () => {
  const session = await signIn(OWNER.token);
  const { secret, code } = await begin();
  assert.equal((await decide(code, {})).status, 401);
  assert.equal((await decide(code, { ...session, origin: 'https://evil.example' })).status, 403);
  assert.equal((await fetch(`${baseUrl}/sign-in/command-line/${code}`)).status, 401);
  assert.deepEqual(await outcome(secret), { status: 'waiting' });
  assert.equal((await decide(code, session, false)).status, 204);
  await outcome(secret);
});

test('the name of a machine must be a short text, and a sign-in with an unknown secret counts as expired', async () => {
  for (const machine of ['', 'x'.repeat(101), 'a\nb', '\u0000', 7])
    assert.equal((await send('/sign-in/command-line', { machine })).status, 400, JSON.stringify(machine));
  assert.deepEqual(await outcome('trd_nobody-has-this'), { status: 'ended' });
});

test('at most ten command lines of one address wait at once, and wrong codes are slowed down', async () => {
  for (let i = 0; i < 9; i++) await begin();
  await begin('x'.repeat(100));
  const refused = await send('/sign-in/command-line', { machine: 'one more' });
  assert.equal(refused.status, 429);
  assert.equal(refused.headers.get('retry-after'), '60');
  const session = await signIn(OWNER.token);
  let status = 0;
  for (let i = 0; i < 200 && status !== 429; i++)
    ({ status } = await fetch(`${baseUrl}/sign-in/command-line/BCDF-BCDF`, { headers: session }));
  assert.equal(status, 429);
});

test('an address that polls for outcomes too often has to wait, and so have new sign-ins from this address', async () => {
  const ask = () => send('/sign-in/command-line/token', { secret: 'trd_nobody-has-this' });
  let refused = await ask();
  for (let asked = 0; refused.status === 200 && asked < 5_000; asked++) refused = await ask();
  assert.equal(refused.status, 429);
  assert.match(refused.headers.get('retry-after') ?? '', /^\d+$/);
  assert.match(await refused.text(), /Too many requests of command lines/);
});
