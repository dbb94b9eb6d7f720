import assert from 'node:assert/strict';
import { execFile } from 'node:child_process';
import { existsSync, readdirSync, writeFileSync } from 'node:fs';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { join } from 'node:path';
import test, { type TestContext } from 'node:test';
import { promisify } from 'node:util';
import { MAIN, Shell } from './troupe-process.ts';

/** A shell whose server answers each GET with the JSON that `answers` has for its path. */
async function shellOf(t: TestContext, answers: Readonly<Record<string, object>>): Promise<Shell> {
  const server = createServer(({ url = '' }, response) => {
    const answer = answers[new URL(url, 'http://server').pathname];
    response.writeHead(answer === undefined ? 404 : 200, { 'content-type': 'application/json' });
    response.end(JSON.stringify(answer ?? { detail: 'There is no such thing.' }));
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  t.after(() => {
    server.closeAllConnections();
    server.close();
  });
  const baseUrl = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
  return new Shell(t, { baseUrl, owner: { token: 'trp_1', workspaceId: 'ws_1' } });
}

const page = (...items: object[]) => ({ items, nextCursor: null });

test('an id that a shell would execute is not offered for completion', async (t) => {
  const ids = ['nb_1', '$(touch carried-out)', '`touch carried-out`', 'a;b', "'", '-x', '\u001b[31m'];
  const shell = await shellOf(t, { '/api/v3/notebooks': page(...ids.map((id) => ({ id }))) });
  assert.equal(await shell.text(['complete-ids', 'notebook']), 'nb_1');
  const program = join(shell.cwd, 'troupe');
  writeFileSync(program, `#!/bin/sh\nexec '${process.execPath}' '${MAIN}' "$@"\n`, { mode: 0o755 });
  const script = `${await shell.text(['completion', 'bash'])}
    COMP_WORDS=('${program}' notebooks show nb); COMP_CWORD=3
    _troupe; printf '%s\\n' "\${COMPREPLY[@]}"`;
  const env = { ...process.env, ...shell.env };
  const { stdout } = await promisify(execFile)('bash', ['--norc', '-c', script], { cwd: shell.cwd, env });
  assert.ok(stdout.startsWith('nb_1\n'), stdout);
  assert.equal(existsSync(join(shell.cwd, 'carried-out')), false);
});

test('a server cannot add files to the requested files', async (t) => {
  const file = { path: '.bash_profile', type: 'file', size: 4, updatedAt: '2026-01-01T00:00:00.000Z' };
  const shell = await shellOf(t, { '/api/v3/files': page(file), '/api/v3/files/.bash_profile': {} });
  for (const named of ['plots/', 'plots/*', '../']) {
    const { exitCode, err } = await shell.troupe(['files', 'get', named]);
    assert.equal(exitCode, 1, named);
    assert.match(
      err,
      /The server has sent a file with a path that cannot be stored here: "\.bash_profile"/,
      named,
    );
  }
  assert.deepEqual(readdirSync(shell.cwd), []);
});
