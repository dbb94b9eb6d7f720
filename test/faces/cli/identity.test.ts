import assert from 'node:assert/strict';
import { type TestContext, test } from 'node:test';
import { parseExpiry } from '#src/faces/cli/commands/tokens.ts';
import { BOOTSTRAP_TOKEN, START } from '#test/people/auth/identity-fixture.ts';
import { serveIdentity } from '#test/people/auth/identity-server.ts';
import { troupe } from './captured-terminal.ts';

/** Starts a server; `cli` runs commands against it as the first owner. */
async function serve(t: TestContext) {
  const fixture = await serveIdentity(t);
  const env = {
    SERVICE_BASE_URL: fixture.baseUrl,
    SERVICE_ACCESS_TOKEN: BOOTSTRAP_TOKEN,
    SERVICE_WORKSPACE_ID: 'home',
  };
  const cli = (args: string, more: { env?: Record<string, string>; color?: boolean } = {}) =>
    troupe(args.split(' '), { ...more, env: { ...env, ...more.env } });
  return { ...fixture, env, cli };
}

test('a member is added, listed, given another role and removed', async (t) => {
  const { cli } = await serve(t);
  assert.deepEqual(await cli('member create ada --role viewer --name Ada'), {
    exitCode: 0,
    out: 'ada is now a viewer.\n',
    err: '',
  });
  assert.deepEqual((await cli('member change ada --role editor')).out, 'ada is now an editor.\n');
  assert.equal(
    (await cli('member list')).out,
    ['USER   ROLE    NAME  SINCE', `ada    editor  Ada   ${START}`, `owner  owner   -     ${START}`, ''].join(
      '\n',
    ),
  );
  assert.deepEqual((await cli('member revoke ada')).out, 'ada is no longer a member.\n');
  assert.deepEqual(
    JSON.parse((await cli('member list --json')).out).map(({ userId }: { userId: string }) => userId),
    ['owner'],
  );
});

test('a token is printed alone, so that a script can store it, and works until it is revoked', async (t) => {
  const { cli } = await serve(t);
  const made = await cli('token create ci --scope workspace:manage --expires 2031-01-31T12:00:00Z');
  assert.match(made.out, /^trp_[\w-]{43}\n$/);
  assert.match(made.err, /^tok_\w+ belongs to owner\. The token is not shown again\.\n$/);
  const env = { SERVICE_ACCESS_TOKEN: made.out.trim() };
  const listed = JSON.parse((await cli('token list --json', { env })).out);
  assert.deepEqual(
    listed.map(({ name, scopes, expiresAt }: Record<string, unknown>) => ({ name, scopes, expiresAt })),
    [
      {
        name: 'bootstrap',
        scopes: [
          'workspaceRuntime:connect',
          'datasource:read',
          'workspace:manage',
          'server:observe',
          'server:manage',
        ],
        expiresAt: null,
      },
      { name: 'ci', scopes: ['workspace:manage'], expiresAt: '2031-01-31T12:00:00.000Z' },
    ],
  );
  const { id } = listed[1];
  assert.deepEqual(JSON.parse((await cli(`token revoke ${id} --json`)).out), { id, revoked: true });
  const refused = await cli('token list', { env });
  assert.deepEqual([refused.exitCode, refused.out], [1, '']);
  assert.match(
    refused.err,
    /^troupe: The server does not accept your token\. Sign in again: troupe login\. .*\n {2}\(unauthenticated at \/api\/v3\/access-tokens, request \S+\)\n$/,
  );
});

test('a workspace can be created, and --workspace selects it', async (t) => {
  const { cli } = await serve(t);
  const id = (await cli('workspace create Research')).out.trim();
  await cli(`member create bob --role owner --workspace ${id}`);
  assert.match((await cli(`--workspace ${id} member list`)).out, /^bob /m);
  assert.doesNotMatch((await cli('member list')).out, /^bob /m);
  const workspaces = JSON.parse((await cli('workspace list --json')).out);
  assert.deepEqual(
    workspaces.map(({ name }: { name: string }) => name),
    ['Default', 'Research'],
  );
});

test('a list longer than a page is printed completely', async (t) => {
  const { cli, members, owner, store } = await serve(t);
  for (let n = 0; n < 120; n++) members.add(owner.workspaceId, `user${n}`, { role: 'viewer' });
  await store.durable();
  assert.equal(JSON.parse((await cli('member list --json')).out).length, 121);
});

test('a refused request exits with 1; with --json the error is JSON on standard error', async (t) => {
  const { cli } = await serve(t);
  const { exitCode, out, err } = await cli('member revoke owner --json');
  const { requestId, ...error } = JSON.parse(err).error;
  assert.deepEqual([exitCode, out, typeof requestId], [1, '', 'string']);
  assert.deepEqual(error, {
    message: 'This is the only owner. Make somebody else an owner first.',
    code: 'last_owner',
    status: 409,
  });
  const invalid = await cli('member create a/b --role viewer');
  assert.match(invalid.err, /\n {2}\/userId /);
});

test('headings are emphasised only on a terminal with colours', async (t) => {
  const { cli } = await serve(t);
  assert.ok((await cli('workspace list', { color: true })).out.startsWith('\u001b[1mID'));
  assert.equal((await cli('workspace list')).out.includes('\u001b'), false);
});

test('the expiry of a token is an absolute time or a duration', () => {
  const before = Date.now();
  const inTwoDays = Date.parse(parseExpiry('2d')) - 2 * 86_400_000;
  assert.ok(inTwoDays >= before && inTwoDays <= Date.now());
  assert.equal(parseExpiry('2031-01-31T13:00:00+01:00'), '2031-01-31T12:00:00.000Z');
  for (const text of ['tomorrow', '2d5h', '2031-13-01T00:00:00Z', '']) assert.throws(() => parseExpiry(text));
});

test('a workspace is deleted only after a confirmation', async (t) => {
  const { cli } = await serve(t);
  const id = (await cli('workspace create Doomed')).out.trim();
  const { exitCode, err } = await cli(`workspace delete ${id}`);
  assert.notEqual(exitCode, 0);
  assert.match(err, /--yes/);
  assert.deepEqual(await cli(`workspace delete ${id} --yes`), {
    exitCode: 0,
    out: `The workspace ${id} is deleted.\n`,
    err: '',
  });
  assert.match((await cli(`workspace delete ${id} --yes`)).err, /no such resource/i);
});
