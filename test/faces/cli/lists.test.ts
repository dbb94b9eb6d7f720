import assert from 'node:assert/strict';
import test from 'node:test';
import type { OwnAccount } from '#src/contract/wire/identity.ts';
import type { NotebookSessionSummary } from '#src/contract/wire/lists.ts';
import type { NotebookSummary } from '#src/contract/wire/notebook.ts';
import type { Run } from '#src/contract/wire/run.ts';
import type { Environment } from '#src/contract/wire/session.ts';
import { openNotebook } from '#test/support/notebook-fixture.ts';
import { startServer } from '#test/support/server-fixture.ts';
import { Shell } from './troupe-process.ts';

const server = await startServer(test);
const { client } = server;
const shell = new Shell(test, server);
const { troupe, json, text } = shell;

test('notebooks, sessions and environments are listed and found by title', async () => {
  const open = await openNotebook(server, { a: '1' }, { title: 'Sales of May' });
  const closed = await openNotebook(server, { a: '1' }, { title: 'Sales of June' });
  await client.notebooks.create({ title: 'Weather' });
  await closed.close();
  await client.executionEnvironments.close(closed.environmentId);
  const titles = async (...args: string[]) =>
    (await json<NotebookSummary[]>(['notebooks', 'list', ...args])).map(({ title }) => title);
  assert.deepEqual(await titles('--title', 'SALES'), ['Sales of May', 'Sales of June']);
  assert.deepEqual(await titles('--newest'), ['Weather', 'Sales of June', 'Sales of May']);

  const sessions = async (...args: string[]) =>
    (await json<NotebookSessionSummary[]>(['sessions', 'list', ...args])).map(({ sessionId }) => sessionId);
  assert.deepEqual(await sessions(), [open.id]);
  assert.deepEqual(await sessions('--all'), [closed.id, open.id]);
  assert.deepEqual(await sessions('--all', '--title', 'june'), [closed.id]);
  assert.match(
    await text(['sessions', 'list']),
    new RegExp(`^SESSION +TITLE .*\n${open.id} +Sales of May +ready `),
  );

  const environments = async (...args: string[]) =>
    (await json<Environment[]>(['environments', 'list', ...args])).map(({ environmentId }) => environmentId);
  assert.deepEqual(await environments(), [open.environmentId]);
  assert.deepEqual(new Set(await environments('--all')), new Set([open.environmentId, closed.environmentId]));
  assert.equal(await text(['complete-ids', 'session']), open.id);
  await open.close();
});

test('the newest runs of the workspace are listed and can be deleted', async () => {
  const [one, two] = [await openNotebook(server, { a: '1' }), await openNotebook(server, { a: '1 / 0' })];
  const [good, bad] = [await one.run(['a']), await two.run(['a'])];
  const runs = async (args: readonly string[], env = {}) =>
    (await json<Run[]>(['runs', 'list', ...args], { env })).map(({ id }) => id);
  assert.deepEqual(await runs([]), [bad.id, good.id]);
  assert.deepEqual(await runs(['--limit', '1']), [bad.id]);
  assert.deepEqual(await runs(['--status', 'completed']), [good.id]);
  assert.deepEqual(await runs(['--status', 'completed,failed']), [bad.id, good.id]);
  assert.equal((await troupe(['runs', 'list', '--status', 'completed,over'])).exitCode, 2);
  assert.deepEqual(await runs(['--by', bad.createdBy ?? '', '--finished-after', bad.finishedAt ?? '']), [
    bad.id,
  ]);
  assert.deepEqual(await runs(['--by', 'nobody']), []);
  assert.deepEqual(await runs(['--finished-before', good.finishedAt ?? '']), []);
  const env = { SERVICE_SESSION_ID: one.id };
  assert.deepEqual(await runs([], env), [good.id]);
  assert.deepEqual(await runs(['--all'], env), [bad.id, good.id]);
  assert.deepEqual(await runs([two.id, '--status', 'failed']), [bad.id]);
  assert.match(
    await text(['runs', 'list']),
    new RegExp(`^ID +STATUS +SESSION .* BY +.*\n${bad.id} +failed +${two.id} .* ${bad.createdBy} `),
  );
  assert.equal((await troupe(['runs', 'list', '--limit', '0'])).exitCode, 2);
  assert.equal(await text(['runs', 'delete', good.id]), `${good.id} is deleted.`);
  assert.deepEqual(await runs([]), [bad.id]);
  const again = await troupe(['runs', 'delete', good.id]);
  assert.equal(again.exitCode, 1);
  await Promise.all([one.close(), two.close()]);
});

test('whoami shows the user, the token and the workspaces, and needs no workspace', async () => {
  const account = await json<OwnAccount>(['whoami'], { env: { SERVICE_WORKSPACE_ID: '' } });
  assert.deepEqual(account, { ...(await client.me()), nextCursor: null });
  assert.match(
    await text(['whoami']),
    new RegExp(`^user +${account.user.id}\ntoken .*\n(.*\n)*WORKSPACE +NAME +ROLE\n(.*\n)*ws_home .* owner$`),
  );
});

test('notebooks, sessions and runs can have metadata, and their lists are filtered by it', async () => {
  const ids = async (...args: string[]) =>
    (await shell.json<{ id?: string; sessionId?: string }[]>(args)).map(
      ({ id, sessionId }) => id ?? sessionId,
    );
  const id = (await shell.text(['notebooks', 'create', '--metadata', 'project=a=b'])).trim();
  assert.deepEqual(await ids('notebooks', 'list', '--metadata', 'project=a=b'), [id]);
  await shell.text(['notebooks', 'metadata', 'set', id, 'ticket=7', 'owner=ada']);
  await shell.text(['notebooks', 'metadata', 'delete', id, 'owner']);
  assert.deepEqual(await shell.json(['notebooks', 'metadata', 'list', id]), { project: 'a=b', ticket: '7' });
  const environment = await client.executionEnvironments.create();
  const open = ['sessions', 'open', id, '--environment', environment.environmentId];
  await shell.text([...open, '--metadata', 'stage=test', '--metadata', 'part=1']);
  assert.deepEqual(await ids('sessions', 'list', '--metadata', 'part=1'), [id]);
  assert.deepEqual(await ids('sessions', 'list', '--metadata', 'part=2'), []);
  const { run } = await shell.json<{ run: { id: string } }>(['run', '--notebook', id, '--metadata', 'try=1']);
  assert.deepEqual(await ids('runs', 'list', '--all', '--metadata', 'try=1'), [run.id]);
  assert.deepEqual(await ids('runs', 'list', id, '--metadata', 'try=2'), []);
  const { exitCode, err } = await shell.troupe(['notebooks', 'list', '--metadata', 'project']);
  assert.equal(exitCode, 2);
  assert.match(err, /key=value/);
});
