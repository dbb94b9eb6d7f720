/** `troupe serve`, which runs the server within the command line. */
import assert from 'node:assert/strict';
import { mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import test from 'node:test';
import { startServerProcess } from '#test/support/child-server.ts';
import { workersOf } from '#test/support/processes.ts';
import { pythonOfTests, SETTINGS } from '#test/support/server-fixture.ts';
import { temporaryDirectory } from '#test/support/store/temporary-store.ts';
import { troupe } from './captured-terminal.ts';
import { MAIN } from './troupe-process.ts';

test('a server that is started in a folder allows the settings file of the folder', async (t) => {
  const cwd = temporaryDirectory(t);
  const env = { XDG_CONFIG_HOME: join(cwd, 'own-settings') };
  mkdirSync(join(cwd, '.git'));
  writeFileSync(join(cwd, 'troupe.config.json'), '{"keepRunsDays": 7}', { mode: 0o600 });
  const value = async () => {
    const { out } = await troupe(['config', '--json'], { env, cwd });
    return (JSON.parse(out) as { name: string; value: unknown }[]).find(({ name }) => name === 'keepRunsDays')
      ?.value;
  };
  assert.notEqual(await value(), 7);
  const settings = { ...SETTINGS, ...pythonOfTests(), ...env };
  const server = await startServerProcess(cwd, settings, [MAIN, 'serve']);
  t.after(() => server.end('SIGKILL'));
  assert.equal(await value(), 7);
});

test('troupe serve serves with as many workers as the settings say', async (t) => {
  const settings = { ...SETTINGS, ...pythonOfTests(), TROUPE_WORKERS: '2' };
  const server = await startServerProcess(temporaryDirectory(t), settings, [MAIN, 'serve']);
  t.after(() => server.end('SIGKILL'));
  assert.equal(workersOf(server.pid).length, 2);
  assert.equal((await fetch(`${server.baseUrl}/readyz`)).status, 200);
  assert.deepEqual(await server.end('SIGTERM'), { code: 0, signal: null });
});
