import assert from 'node:assert/strict';
import { execFile } from 'node:child_process';
import { chmodSync, existsSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { delimiter, join } from 'node:path';
import test from 'node:test';
import { promisify } from 'node:util';
import { PACKAGE_ROOT } from '#src/base/install/package-root.ts';
import { startServer } from '#test/support/server-fixture.ts';
import { startPackageIndex } from '#test/support/stand-ins/package-index.ts';
import { MAIN, Shell } from './troupe-process.ts';

test('the first report of the README works when it is typed word by word', async (t) => {
  const humanize = {
    name: 'humanize',
    version: '4.0',
    code: 'def intcomma(value, ndigits): return f"{value:,.{ndigits}f}"',
  };
  const index = await startPackageIndex(t, [humanize]);
  const server = await startServer(t, { TROUPE_PACKAGES: 'true', TROUPE_PACKAGE_INDEX: index.url });
  const shell = new Shell(t, server);
  const readme = readFileSync(join(PACKAGE_ROOT, 'README.md'), 'utf8');
  const section = /^## A first report$(.*?)^## /ms.exec(readme)?.[1] ?? '';
  // The first block installs the command and names the server; here the environment does that.
  const [, ...blocks] = [...section.matchAll(/^```sh\n(.*?)^```$/gms)].map(([, block]) => block ?? '');
  assert.ok(blocks.length >= 2);
  const programs = join(shell.cwd, 'programs');
  mkdirSync(programs);
  writeFileSync(join(programs, 'troupe'), `#!/bin/sh\nexec '${process.execPath}' '${MAIN}' "$@"\n`);
  chmodSync(join(programs, 'troupe'), 0o755);
  const env = { ...process.env, ...shell.env, PATH: `${programs}${delimiter}${process.env.PATH}` };
  const { stdout } = await promisify(execFile)('sh', ['-ec', blocks.join('\n')], { cwd: shell.cwd, env });
  assert.match(stdout, /Month 3: 339\.90 €/);
  assert.match(stdout, /^region,amount\nnorth,99\.9\nsouth,240\.0$/m);
  assert.match(stdout, /Month 2: 120\.50 €/);
  const page = readFileSync(join(shell.cwd, 'sales/report.html'), 'utf8');
  assert.match(page, /<title>Sales of a month<\/title>/);
  assert.match(page, /<img [^>]*src="data:image\/png/);
  assert.ok(existsSync(join(shell.cwd, 'sales/february.html')));
  const found = await server.client.notebooks.list({});
  assert.deepEqual(
    found.items.map(({ title }) => title),
    ['Sales of a month'],
    'the second run updates the notebook of the first',
  );
});
