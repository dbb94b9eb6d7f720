/**
 * `troupe login` and `troupe logout`, confirmed in the way in which the page in the browser does
 * it.
 */
import assert from 'node:assert/strict';
import { existsSync, readFileSync, statSync } from 'node:fs';
import { join } from 'node:path';
import test from 'node:test';
import type { OwnAccount } from '#src/contract/wire/identity.ts';
import { OWNER, startServer } from '#test/support/server-fixture.ts';
import { Shell } from './troupe-process.ts';

const server = await startServer(test);
const { baseUrl } = server;
const shell = new Shell(test);
const config = join(shell.cwd, 'config');
const env = { XDG_CONFIG_HOME: config };
const file = join(config, 'troupe', 'credentials.json');

function post(path: string, body: unknown, headers: Record<string, string>): Promise<Response> {
  return fetch(baseUrl + path, {
    method: 'POST',
    headers: { 'content-type': 'application/json', origin: baseUrl, ...headers },
    body: JSON.stringify(body),
  });
}

/** Starts the command, and confirms or denies the code that it shows. */
async function login(args: readonly string[], confirm: boolean) {
  const command = shell.start(['login', baseUrl, ...args], { env });
  await command.until('type this code there:'); // the command writes the code in one piece
  const [, code = ''] = /code there: +([A-Z]{4}-[A-Z]{4})/.exec(command.output) ?? [];
  const signedIn = await post('/sign-in', {}, { authorization: `Bearer ${OWNER.token}` });
  const cookie = signedIn.headers.get('set-cookie')!.split(';')[0]!;
  const headers = { cookie, 'service-workspace-id': OWNER.workspaceId };
  assert.equal((await post(`/sign-in/command-line/${code}`, { confirm }, headers)).status, 204);
  return command.ended;
}

test('login stores a token that only its user can read, further commands use the token, and logout revokes it', async () => {
  const { exitCode, out, err } = await login([], true);
  assert.equal(exitCode, 0, err);
  assert.equal(out, `Signed in to ${baseUrl} as owner, in the workspace ${OWNER.workspaceId}.\n`);
  assert.equal(statSync(file).mode & 0o777, 0o600);
  const { accessToken } = JSON.parse(readFileSync(file, 'utf8'))[baseUrl] as { accessToken: string };
  assert.match(accessToken, /^trp_/);
  assert.ok(!(out + err).includes(accessToken));
  const me = await shell.json<OwnAccount>(['whoami'], { env });
  assert.equal(me.user.id, 'owner');
  assert.deepEqual(await shell.json(['notebooks', 'list'], { env }), []);
  assert.equal(await shell.text(['logout'], { env }), `Signed out of ${baseUrl}.`);
  const known = await fetch(`${baseUrl}/api/v3/me`, { headers: { authorization: `Bearer ${accessToken}` } });
  assert.equal(known.status, 401);
  const again = await shell.troupe(['logout', baseUrl], { env });
  assert.deepEqual([again.exitCode, again.out], [4, '']);
  assert.match(again.err, /You have not signed in to .* \(troupe login\)/);
});

test('a login that is refused in the browser stores no token and reports the refusal', async () => {
  const { exitCode, err } = await login([], false);
  assert.equal(exitCode, 1);
  assert.match(err, /refused in the browser/);
  assert.equal(existsSync(file) && readFileSync(file, 'utf8').includes(baseUrl), false);
});

test('a token of one server is not sent to another server', async () => {
  const elsewhere = await shell.troupe(['whoami'], {
    env: { ...env, SERVICE_BASE_URL: 'http://10.0.0.1:1' },
  });
  assert.equal(elsewhere.exitCode, 4);
  assert.match(elsewhere.err, /You are not signed in to .* Run: troupe login/);
});
