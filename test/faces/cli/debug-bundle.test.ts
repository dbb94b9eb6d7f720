import assert from 'node:assert/strict';
import { mkdtempSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { test } from 'node:test';
import { openNotebook } from '#test/support/notebook-fixture.ts';
import { OWNER, startServer } from '#test/support/server-fixture.ts';
import { troupe } from './captured-terminal.ts';

/** Secrets, each planted in one place. None of them may be in the bundle. */
const PLANTED = {
  anthropic: 'sk-ant-planted-0123456789',
  openai: 'planted-openai-key-012345',
  bootstrap: 'planted-bootstrap-token-01',
  databasePassword: 'planted-database-password',
  variable: 'planted-variable-value',
  code: 'planted_in_code',
  output: 'planted-output-text',
  title: 'planted-title',
  path: 'planted-path-token',
  modelKey: 'sk-planted-workspace-key-01',
};

const server = await startServer(test, {
  ANTHROPIC_API_KEY: PLANTED.anthropic,
  OPENAI_API_KEY: PLANTED.openai,
});

test('a bundle has settings, findings, state, actors, metrics and log, and nothing secret', async (t) => {
  const cwd = mkdtempSync(join(tmpdir(), 'troupe-bundle-'));
  t.after(() => rmSync(cwd, { recursive: true }));
  const { client } = server;
  const notebook = await openNotebook(
    server,
    { a: `${PLANTED.code} = 1\nprint("planted-" + "output-text")`, b: '1 / 0' },
    { variables: { KEY: PLANTED.variable }, title: PLANTED.title },
  );
  await notebook.run([]);
  await client.datasources.create({
    slug: 'planted',
    connection: {
      kind: 'postgres',
      connection_string: `postgresql://u:${PLANTED.databasePassword}@127.0.0.1/d`,
      schema: 'public',
    },
  });
  await client.models.setKey('anthropic', PLANTED.modelKey);
  await server.request('GET', `/api/v3/notebooks/nb_1?token=${PLANTED.path}`);
  writeFileSync(join(cwd, 'troupe.config.json'), JSON.stringify({ openaiApiKey: PLANTED.openai }), {
    mode: 0o600,
  });
  const env = {
    SERVICE_BASE_URL: server.baseUrl,
    SERVICE_ACCESS_TOKEN: OWNER.token,
    SERVICE_WORKSPACE_ID: OWNER.workspaceId,
    ANTHROPIC_API_KEY: PLANTED.anthropic,
    TROUPE_BOOTSTRAP_TOKEN: PLANTED.bootstrap,
    TROUPE_BOOTSTRAP_WORKSPACE: 'ws_planted',
    TROUPE_DATA_DIR: join(cwd, 'data'),
  };
  const { exitCode, out, err } = await troupe(['debug', 'bundle', '-o', 'report.json'], { env, cwd });
  assert.equal(exitCode, 0, err);
  const file = join(cwd, 'report.json');
  assert.equal(out, `${file}\n`);
  assert.equal(statSync(file).mode & 0o777, 0o600);
  const text = readFileSync(file, 'utf8');
  for (const [place, secret] of Object.entries({ ...PLANTED, owner: OWNER.token })) {
    assert.ok(!text.includes(secret), `${place} is in the bundle`);
  }
  const bundle = JSON.parse(text) as Record<string, unknown>;
  const { settings, doctor, server: state, actors, metrics, log } = bundle as Record<string, unknown[]>;
  assert.ok(settings!.length > 20 && doctor!.length > 3 && actors!.length >= 2 && log!.length > 0);
  assert.ok(metrics!.includes('# EOF'));
  assert.equal(Object(state).kernelHost.state, 'up');
  assert.ok(text.includes(notebook.id));

  const again = await troupe(['debug', 'bundle', '-o', 'report.json'], { env, cwd });
  assert.equal(again.exitCode, 1, 'a file that is there is not overwritten');
  assert.equal(readFileSync(file, 'utf8'), text);
  await notebook.close();
});

test('without a server the bundle lists the parts that could not be read', async (t) => {
  const cwd = mkdtempSync(join(tmpdir(), 'troupe-bundle-'));
  t.after(() => rmSync(cwd, { recursive: true }));
  const env = {
    SERVICE_BASE_URL: 'http://127.0.0.1:9',
    SERVICE_ACCESS_TOKEN: 'planted-service-token-01',
    SERVICE_WORKSPACE_ID: 'ws_1',
    TROUPE_DATA_DIR: join(cwd, 'data'),
  };
  const { exitCode, out } = await troupe(['debug', 'bundle', '--json'], { env, cwd });
  assert.equal(exitCode, 0);
  const text = readFileSync(String(JSON.parse(out).file), 'utf8');
  const { server: state, log, settings } = JSON.parse(text) as Record<string, { unavailable?: string }>;
  assert.ok(state?.unavailable !== undefined && log?.unavailable !== undefined);
  assert.ok(Array.isArray(settings));
  assert.ok(!text.includes('planted-service-token-01'));
});
