import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import test from 'node:test';
import { fileURLToPath } from 'node:url';
import { eventually } from '#test/support/processes.ts';
import { pythonOfTests, SETTINGS } from '#test/support/server-fixture.ts';

const MAIN = fileURLToPath(new URL('../../../server/main.js', import.meta.url));

test('the first access token is written to its file, but not to the log of a service manager', async (t) => {
  const dataDir = mkdtempSync(join(tmpdir(), 'troupe-first-'));
  const { PATH = '' } = process.env;
  const { TROUPE_BOOTSTRAP_TOKEN: _token, TROUPE_BOOTSTRAP_WORKSPACE: _workspace, ...settings } = SETTINGS;
  const child = spawn(process.execPath, [MAIN], {
    cwd: dataDir,
    env: { PATH, ...settings, ...pythonOfTests(), TROUPE_DATA_DIR: dataDir },
    stdio: ['ignore', 'pipe', 'pipe'],
  });
  const exited = once(child, 'exit');
  t.after(async () => {
    child.kill('SIGKILL');
    await exited;
    rmSync(dataDir, { recursive: true, force: true });
  });
  let printed = '';
  for (const stream of [child.stdout, child.stderr]) stream.on('data', (text) => (printed += String(text)));
  const isReady = () => {
    assert.equal(child.exitCode, null, printed);
    return printed.includes('"msg":"ready"');
  };
  await eventually('it is ready', isReady, 60_000);
  const file = join(dataDir, 'bootstrap.json');
  const { accessToken, workspaceId } = JSON.parse(readFileSync(file, 'utf8')) as Record<string, string>;
  assert.ok(printed.includes(workspaceId!) && printed.includes(file), printed);
  assert.ok(!printed.includes(accessToken!));
});
