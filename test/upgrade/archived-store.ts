/**
 * A store that another release has written: the server of an archive (`npm pack`) makes objects of every kind, and the server
 * of this checkout must serve all of them as before.
 */
import assert from 'node:assert/strict';
import { execFile } from 'node:child_process';
import { mkdirSync } from 'node:fs';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { PACKAGE_ROOT } from '#src/base/install/package-root.ts';
import { type Client, createClient } from '#src/contract/client/client.ts';
import { collect } from '#src/faces/cli/collect.ts';
import { verify } from '#src/operate/maintenance/verify.ts';
import { type ServerProcess, startServerProcess } from '#test/support/child-server.ts';
import { eventually } from '#test/support/processes.ts';
import { OWNER, type Owner, SETTINGS } from '#test/support/server-fixture.ts';
import { startScriptedModel } from '#test/support/stand-ins/scripted-model.ts';

const execute = promisify(execFile);
const CELLS = {
  cells: [
    { cell_id: 'word', code: 'import os\nprint(os.environ["WORD"], os.environ["REGION"])' },
    { cell_id: 'rows', code: '"x" * 600_000' },
  ],
};

export interface ArchivedStoreOptions {
  /** An empty folder. */
  readonly folder: string;
  /** The archive of the release that writes the store. When undefined, this checkout is packed. */
  readonly archive: string | undefined;
  readonly say: (line: string) => void;
}

/** Resolves once the server of this checkout has served every object that the server of the archive made. */
export async function openArchivedStore(owner: Owner, options: ArchivedStoreOptions): Promise<void> {
  const { folder, archive = await pack(folder), say } = options;
  const prefix = join(folder, 'installed');
  const dataDir = join(folder, 'data');
  for (const path of [prefix, dataDir]) mkdirSync(path, { mode: 0o700 });
  await npm(folder, 'install', '--prefix', prefix, '--ignore-scripts', '--prefer-offline', archive);
  say(`${archive} is installed`);
  const model = await startScriptedModel(owner);
  model.always((exchange) => exchange.text('Four.').end());
  const settings = {
    ...SETTINGS,
    // Without it the installed package would make a Python environment of its own, which takes minutes.
    TROUPE_PYTHON: process.env.TROUPE_PYTHON || join(PACKAGE_ROOT, '.venv/bin/python'),
    TROUPE_OPENAI_COMPATIBLE_URL: model.url,
    TROUPE_DEFAULT_MODEL: 'openai-compatible/scripted',
  };
  const before = await startServerProcess(dataDir, settings, [
    join(prefix, 'node_modules/troupe/src/setup/troupe.mjs'),
    'serve',
  ]);
  const written = await whileServing(before, async (client) => {
    await makeObjects(client);
    return objectsOf(client);
  });
  say(`its server has written ${written.length} objects`);
  const now = await startServerProcess(dataDir, settings);
  const served = await whileServing(now, async (client) => {
    const objects = await objectsOf(client);
    await useSealed(client);
    return objects;
  });
  assert.deepEqual(served, written);
  const { damage, records } = await verify(dataDir);
  assert.deepEqual(damage, []);
  say(`the server of this checkout has served all of them; its ${records} records are sound`);
}

async function whileServing<T>(server: ServerProcess, use: (client: Client) => Promise<T>): Promise<T> {
  try {
    const { baseUrl } = server;
    return await use(createClient({ baseUrl, accessToken: OWNER.token, workspaceId: OWNER.workspaceId }));
  } finally {
    await server.end('SIGTERM');
  }
}

/** Makes at least one object of every kind that a workspace stores. */
async function makeObjects(client: Client): Promise<void> {
  await client.members.create({ userId: 'bob', role: 'editor' });
  await client.accessTokens.create({ name: 'report', userId: 'bob', scopes: ['datasource:read'] });
  await client.workspaces.create({ name: 'Research' });
  await client.files.put('data/sales.csv', Buffer.from('region,amount\neu,3\n'));
  await client.datasources.create({ slug: 'sales', connection: { kind: 'sqlite', path: 'sales.sqlite' } });
  await client.datasources.grant('sales', 'user:bob');
  const fields = {
    title: 'Sales',
    serialization: CELLS,
    variables: { REGION: 'eu' },
    metadata: { team: 'a' },
  };
  const { id, updatedAt } = await client.notebooks.create(fields);
  await client.notebooks.update(id, { expectedUpdatedAt: updatedAt, datasourceSlugs: ['sales'] });
  await client.notebooks.setSecret(id, 'WORD', 'sesame');
  await client.notebooks.create({ title: 'Empty' });
  await runAll(client, id);
  const { environmentId } = await client.executionEnvironments.create({});
  const { sessionId } = await client.agentSessions.open({
    environmentId,
    config: { instructions: 'Be brief.' },
  });
  await client.agentSessions.ask(sessionId, 'What is two and two?');
  await client.agentSessions.close(sessionId);
  await client.executionEnvironments.close(environmentId);
}

/** Runs the notebook in a session that is closed afterwards. Resolves with the text that it printed. */
async function runAll(client: Client, notebookId: string): Promise<string> {
  const { environmentId } = await client.executionEnvironments.create({});
  await client.notebookSessions.open({ notebookId, environmentId });
  await eventually('the session is ready', async () => {
    const { status } = await client.notebookSessions.get(notebookId);
    return status === 'ready';
  });
  const { runId } = await client.executions.submit(notebookId, { type: 'all' });
  const run = await client.waitForRun(runId);
  assert.equal(run.status, 'completed', JSON.stringify(run.error));
  await client.notebookSessions.close(notebookId);
  await client.executionEnvironments.close(environmentId);
  return JSON.stringify(run.output);
}

/** Uses the records that are sealed with the keyring: a secret of a notebook, and a connection. */
async function useSealed(client: Client): Promise<void> {
  const [notebook] = await collect(client.notebooks.each({ title: 'Sales' }));
  assert.match(await runAll(client, notebook?.id ?? ''), /sesame eu/);
  await client.datasources.test('sales');
}

/** Returns everything that the API shows of the workspace, each object with the names of its kind. */
async function objectsOf(client: Client): Promise<readonly unknown[]> {
  const objects: unknown[] = [];
  const add = (kind: string, object: unknown) => objects.push([kind, object]);
  add('caller', await client.me());
  for (const workspace of await collect(client.workspaces.each())) {
    add('workspace', workspace);
    add('limits', await client.workspaces.limits(workspace.id));
  }
  for (const member of await collect(client.members.each())) add('member', member);
  for (const token of await collect(client.accessTokens.each())) add('token', token);
  for (const { path } of await collect(client.files.walk()))
    add(`file ${path}`, Buffer.from((await client.files.get(path)).bytes).toString());
  for (const { slug } of await collect(client.datasources.each())) {
    add('datasource', await client.datasources.get(slug));
    add('grants', await client.datasources.grants(slug));
  }
  for (const { id } of await collect(client.notebooks.each())) {
    add('notebook', await client.notebooks.get(id));
    add('secrets', await client.notebooks.secrets(id));
    for (const { updatedAt } of await client.notebooks.versions(id))
      add('version', await client.notebooks.version(id, updatedAt));
    add('outputs', Buffer.from((await client.notebooks.export(id, 'ipynb')).bytes).toString());
  }
  for (const { environmentId } of await collect(client.executionEnvironments.each()))
    add('environment', await client.executionEnvironments.get(environmentId));
  for (const { sessionId } of await collect(client.notebookSessions.each()))
    add('session', await client.notebookSessions.get(sessionId));
  for (const { id } of await collect(client.runs.each())) add('run', await client.runs.get(id));
  for (const { sessionId } of await collect(client.agentSessions.each())) {
    add('conversation', await client.agentSessions.get(sessionId));
    add('entries', await collect(client.agentSessions.eachEntry(sessionId)));
  }
  return objects;
}

/** Packs this checkout. Resolves with the path of the archive. */
async function pack(folder: string): Promise<string> {
  const out = await npm(PACKAGE_ROOT, 'pack', '--json', '--pack-destination', folder);
  const [packed] = JSON.parse(out.slice(out.indexOf('[\n'))) as [{ readonly filename: string }];
  return join(folder, packed.filename);
}

async function npm(cwd: string, ...args: readonly string[]): Promise<string> {
  const { stdout } = await execute('npm', [...args], { cwd, maxBuffer: 2 ** 24 });
  return stdout;
}
