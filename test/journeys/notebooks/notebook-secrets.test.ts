// own process: it reads the memory of this process
/** Secret variables of notebooks: their values in a kernel, and every place where they could leak. */
import assert from 'node:assert/strict';
import { readdirSync, readFileSync } from 'node:fs';
import test from 'node:test';
import { filesBelow } from '#test/support/living-files.ts';
import { addMember } from '#test/support/members.ts';
import { cellsOf, openNotebook, printed, results } from '#test/support/notebook-fixture.ts';
import { memoryHas } from '#test/support/process-memory.ts';
import { eventually, kernelHostOf, kernelsOf } from '#test/support/processes.ts';
import { refusalOf } from '#test/support/refusal.ts';
import { OWNER, startServer } from '#test/support/server-fixture.ts';

/** Written in two halves, so that no other process has the whole text in its source. */
const CANARY = ['canary', '5e1f40aa'].join('-');
const server = await startServer(test);
const { client } = server;

/** Opens the notebook, runs all of it, and closes it. Returns the printed text. */
async function runOnce(notebookId: string): Promise<string> {
  const { environmentId } = await client.executionEnvironments.create();
  await client.notebookSessions.open({ notebookId, environmentId });
  await client.notebookSessions.waitUntilReady(notebookId);
  const { runId } = await client.executions.submit(notebookId, { type: 'all' });
  const run = await client.waitForRun(runId);
  await client.notebookSessions.close(notebookId);
  return results(run).map(printed).join('').trim();
}

test('a kernel has the secrets of its notebook, which override variables, survive a rotation, and change at the next start of the kernel', async () => {
  const code = 'import os\nprint(os.environ.get("TOKEN"), os.environ["REGION"])';
  const { id } = await client.notebooks.create({
    serialization: { cells: cellsOf({ show: code }) },
    variables: { TOKEN: 'plain', REGION: 'eu' },
  });
  const { name, updatedBy } = await client.notebooks.setSecret(id, 'TOKEN', 'one');
  assert.deepEqual([name, updatedBy], ['TOKEN', (await client.me()).user.id]);
  assert.equal(await runOnce(id), 'one eu');
  await client.notebooks.setSecret(id, 'TOKEN', 'two\nlines ✓');
  const key = (await client.keys.rotate()).items.find(({ active }) => active);
  assert.equal(key?.sealed, 1, 'the new key seals the secret, and only the current one');
  assert.equal(await runOnce(id), 'two\nlines ✓ eu');
  await client.notebooks.deleteSecret(id, 'TOKEN');
  assert.deepEqual(await client.notebooks.secrets(id), []);
  assert.equal(await runOnce(id), 'plain eu');
});

test('a kernel that replaces another kernel has the secrets as well', async () => {
  const notebook = await openNotebook(server, { die: 'import os\nos._exit(1)' });
  await client.notebooks.setSecret(notebook.id, 'LATER', 'here');
  await notebook.run({ type: 'all' });
  await client.notebookSessions.waitUntilReady(notebook.id);
  const code = 'import os\nprint(os.environ["LATER"])';
  const { body } = await server.request('POST', '/api/cee/kernel/execute', {
    body: { code },
    headers: { 'service-session-id': notebook.id },
  });
  assert.equal(Object(body).stdout, 'here\n');
  await notebook.close();
});

test('only the kernel contains a secret, and no answer, event, export, log line, file, command line or other process', async () => {
  const code = 'import os, hashlib\nprint(len(os.environ["TOKEN"]))\nos.environ["MISSING"]';
  const { id } = await client.notebooks.create({ serialization: { cells: cellsOf({ show: code }) } });
  const answers: string[] = [];
  const ask = async (method: string, path: string, body?: unknown) => {
    const { status, text, headers } = await server.request(method, path, body === undefined ? {} : { body });
    answers.push(text, JSON.stringify(headers));
    return status;
  };
  const path = `/api/v3/notebooks/${id}`;
  assert.equal(await ask('PUT', `${path}/secrets/TOKEN`, { value: CANARY }), 200);
  assert.equal(await ask('PUT', `${path}/secrets/TOKEN`, { value: CANARY, more: 1 }), 400);
  assert.equal(await ask('PUT', `${path}/secrets/1TOKEN`, { value: CANARY }), 400);
  assert.equal(await ask('PUT', `${path}/secrets/TOKEN`, { value: `${CANARY}\0` }), 400);
  const { environmentId } = await client.executionEnvironments.create();
  await client.notebookSessions.open({ notebookId: id, environmentId });
  await client.notebookSessions.waitUntilReady(id);
  const before = kernelsOf(server.pid);
  const later = await openNotebook(server, { other: 'x = 1' });
  const run = await client.waitForRun((await client.executions.submit(id, { type: 'all' })).runId);
  assert.equal(run.status, 'failed');
  assert.equal(results(run).map(printed).join('').split('\n')[0], String(CANARY.length));
  for (const one of ['', '/secrets', '/export?format=py', '/export?format=html', '/export?format=ipynb'])
    assert.equal(await ask('GET', path + one), 200, one);
  for (const one of [`notebook-sessions/${id}`, `runs/${run.id}`, 'notebooks', 'audit', 'actors', 'keys'])
    assert.equal(await ask('GET', `/api/v3/${one}`), 200, one);
  assert.equal(await ask('GET', `/api/v3/actors/notebook-session/${id}`), 200);
  const { items } = await client.audit({ action: 'notebook-secret' });
  assert.deepEqual(
    items.filter(({ target }) => target === id).map(({ action, detail }) => [action, detail]),
    [['notebook-secret.set', 'TOKEN']],
  );
  const copy = await client.notebooks.import({ format: 'py', content: await exported(id) });
  assert.deepEqual(await client.notebooks.secrets(copy.id), []);
  for (const text of [...answers, JSON.stringify(run), JSON.stringify(server.log)])
    assert.equal(text.includes(CANARY), false, text);

  const files = filesBelow(server.dataDir);
  assert.ok(files.size > 2);
  for (const [path, bytes] of files) assert.equal(bytes.includes(CANARY), false, path);
  for (const pid of readdirSync('/proc').filter((name) => /^\d+$/.test(name)))
    for (const file of ['cmdline', 'environ']) {
      const text = await Promise.resolve()
        .then(() => readFileSync(`/proc/${pid}/${file}`, 'latin1'))
        .catch(() => ''); // gone, or not ours to read
      assert.equal(text.includes(CANARY), false, `${file} of ${pid}`);
    }

  assert.notEqual(
    memoryHas(kernelHostOf(server.pid).zygote, CANARY),
    true,
    'every later kernel would inherit it',
  );
  const after = await eventually('the other kernel', () =>
    kernelsOf(server.pid).find(({ pid }) => !before.some((one) => one.pid === pid)),
  );
  assert.notEqual(memoryHas(after.pid, CANARY), true);
  await later.close();
  await client.notebookSessions.close(id);
});

test('viewers see the names but cannot set secrets, other workspaces see nothing, and the 101st secret is refused', async () => {
  const { id } = await client.notebooks.create({});
  await client.members.create({ userId: 'victor', role: 'viewer' });
  const { token } = await client.accessTokens.create({
    name: 'v',
    userId: 'victor',
    scopes: ['workspaceRuntime:connect'],
  });
  const viewer = server.clientOf({ token, workspaceId: OWNER.workspaceId });
  const stranger = server.clientOf(await server.stranger());
  for (let i = 0; i < 100; i++) await client.notebooks.setSecret(id, `NAME_${i}`, 'x');
  assert.equal(await refusalOf(client.notebooks.setSecret(id, 'ONE_MORE', 'x')), '429 quota_exceeded');
  await client.notebooks.setSecret(id, 'NAME_0', 'another');
  const longest = 'N'.repeat(128);
  await client.notebooks.deleteSecret(id, 'NAME_1');
  await client.notebooks.setSecret(id, longest, 'x'.repeat(65_536));
  assert.equal(await refusalOf(client.notebooks.setSecret(id, `${longest}N`, 'x')), '400 invalid_request');
  assert.equal(
    await refusalOf(client.notebooks.setSecret(id, longest, 'x'.repeat(65_537))),
    '400 invalid_request',
  );
  assert.equal((await viewer.notebooks.secrets(id)).length, 100);
  assert.equal(await refusalOf(viewer.notebooks.setSecret(id, 'NAME_0', 'x')), '403 role_too_low');
  assert.equal(await refusalOf(viewer.notebooks.deleteSecret(id, 'NAME_0')), '403 role_too_low');
  assert.equal(await refusalOf(stranger.notebooks.secrets(id)), '404 not_found');
  assert.equal(await refusalOf(stranger.notebooks.setSecret(id, 'NAME_0', 'x')), '404 not_found');
  assert.equal(await refusalOf(client.notebooks.deleteSecret(id, 'NAME_1')), '404 not_found');
  const sealed = async () => (await client.keys.list()).items.find(({ active }) => active)?.sealed ?? 0;
  const sealedBefore = await sealed();
  await client.notebooks.delete(id);
  assert.equal(await sealed(), sealedBefore - 100, 'the secrets go with their notebook');
});

async function exported(id: string): Promise<string> {
  return Buffer.from((await client.notebooks.export(id, 'py')).bytes).toString('utf8');
}

test('a notebook that is imported with the settings of another notebook has the datasources, variables, metadata and secrets of that notebook, and its own code', async () => {
  const from = await client.notebooks.create({
    datasourceSlugs: ['sales'],
    variables: { REGION: 'eu' },
    metadata: { project: 'sales' },
  });
  await client.notebooks.setSecret(from.id, 'TOKEN', CANARY);
  const content =
    'import os\nprint(os.environ["TOKEN"] == "-".join(["canary", "5e1f40aa"]), os.environ["REGION"])';
  const made = await client.notebooks.import({ format: 'py', content, settingsFrom: from.id });
  assert.deepEqual(
    [made.datasourceSlugs, made.variables, made.metadata],
    [from.datasourceSlugs, from.variables, from.metadata],
  );
  assert.equal(await runOnce(made.id), 'True eu');
  // The copy is independent of the original.
  await client.notebooks.deleteSecret(from.id, 'TOKEN');
  assert.equal(await runOnce(made.id), 'True eu');
  assert.deepEqual((await client.notebooks.secrets(from.id)).length, 0);
  const audited = (await client.audit({ action: 'notebook.copy-settings' })).items;
  assert.equal(audited.at(-1)?.target, from.id);
});

test('settings are taken from notebooks of the workspace only, for new notebooks only, and not by viewers', async () => {
  const { id, updatedAt: expectedUpdatedAt } = await client.notebooks.create({});
  const file = { format: 'py', content: '1', settingsFrom: id } as const;
  const foreign = server.clientOf(await server.stranger());
  assert.equal(await refusalOf(foreign.notebooks.import(file)), '404 not_found');
  assert.equal(
    await refusalOf(client.notebooks.import({ ...file, settingsFrom: 'nb_nothing' })),
    '404 not_found',
  );
  const replaces = { notebookId: id, expectedUpdatedAt };
  assert.equal(await refusalOf(client.notebooks.import({ ...file, replaces })), '400 invalid_request');
  const vera = await addMember(server, 'vera', 'viewer');
  assert.equal(await refusalOf(vera.client.notebooks.import(file)), '403 role_too_low');
});
