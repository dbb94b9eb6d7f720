import assert from 'node:assert/strict';
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { test } from 'node:test';
import { embeddedLink } from '#src/datasource/embedded/embedded-link.ts';
import { Engines } from '#src/datasource/embedded/engines.ts';
import { PYTHON, startTestHost } from '#test/confined/kernel-fixture.ts';
import { ask } from './probe-fixture.ts';

test('a Python that lacks the package of a database names the package, and continues', async (t) => {
  const base = mkdtempSync(join(tmpdir(), 'troupe-package-'));
  t.after(() => rmSync(base, { recursive: true, force: true }));
  mkdirSync(join(base, 'files'));
  writeFileSync(join(base, 'files', 'a.csv'), 'x\n1\n');
  writeFileSync(join(base, 'sitecustomize.py'), 'import sys\nsys.modules["apsw"] = None\n');
  const python = join(base, 'python');
  writeFileSync(python, `#!/bin/sh\nPYTHONPATH='${base}' exec '${PYTHON}' "$@"\n`, { mode: 0o755 });
  await using started = await startTestHost({ python });
  using engines = new Engines((launch) => started.host.startEngine(launch));
  const filesDirectory = join(base, 'files');
  const sqlite = embeddedLink({ kind: 'sqlite', filesDirectory, path: 'a.sqlite' }, engines);
  await assert.rejects(ask(sqlite, 'SELECT 1'), { category: 'driver_missing', message: /no package apsw/ });
  const files = embeddedLink({ kind: 'files', filesDirectory, path: '.' }, engines);
  assert.deepEqual((await ask(files, 'SELECT * FROM a')).rows, [[1]]);
});
