import assert from 'node:assert/strict';
import { existsSync, readdirSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import { readChecks } from '#src/confined/processes/host/kept-checks.ts';
import { startAttacked } from './attacked-server.ts';

for (const workers of ['1', '2']) {
  test(`a server of ${workers} workers that cannot confine kernels as its setting requires ends before it stores anything or creates a token`, async (t) => {
    const dataDir = join('/var/tmp', `troupe-required-${process.pid}-${workers}`);
    await assert.rejects(
      startAttacked(t, {
        user: 'this user',
        without: 'landlock,namespaces',
        settings: { TROUPE_KERNEL_CONFINEMENT: 'require', TROUPE_WORKERS: workers, TROUPE_DATA_DIR: dataDir },
      }),
      /Kernels cannot be fully confined on this machine \(.*\), and full confinement is required/,
    );
    t.after(() => rmSync(dataDir, { recursive: true, force: true }));
    assert.equal(existsSync(join(dataDir, 'bootstrap.json')), false);
    assert.equal(existsSync(join(dataDir, 'store', 'data.mdb')), false);
    assert.ok(readdirSync(dataDir).length > 0, 'it was this directory');
    // `troupe doctor`, which may be allowed more than the server, reads why.
    assert.match(readChecks(dataDir)?.problem ?? '', /^Kernels cannot be fully confined on this machine/);
  });
}
