/** The guide to a nightly report in docs/cli.md. */
import assert from 'node:assert/strict';
import { execFile } from 'node:child_process';
import { chmodSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { delimiter, join } from 'node:path';
import test from 'node:test';
import { promisify } from 'node:util';
import { PACKAGE_ROOT } from '#src/base/install/package-root.ts';
import { eventually } from '#test/support/processes.ts';
import { startServer } from '#test/support/server-fixture.ts';
import { hookReceiver } from '#test/support/stand-ins/hook-receiver.ts';
import { MAIN, Shell } from './troupe-process.ts';

test('the nightly report works when it is typed word by word, and its receiver hears of a failure', async (t) => {
  const receiver = await hookReceiver(t);
  const server = await startServer(t);
  const shell = new Shell(t, server);
  const guide = readFileSync(join(PACKAGE_ROOT, 'docs/cli.md'), 'utf8');
  const section = /^## A nightly report$(.*?)^## /ms.exec(guide)?.[1] ?? '';
  const blocks = [...section.matchAll(/^```sh\n(.*?)^```$/gms)].map(([, block]) => block ?? '');
  assert.equal(blocks.length, 3);
  const programs = join(shell.cwd, 'programs');
  mkdirSync(programs);
  writeFileSync(join(programs, 'troupe'), `#!/bin/sh\nexec '${process.execPath}' '${MAIN}' "$@"\n`);
  chmodSync(join(programs, 'troupe'), 0o755);
  const env = {
    ...process.env,
    ...shell.env,
    PATH: `${programs}${delimiter}${process.env.PATH}`,
    RECEIVER: receiver.url,
  };
  const { stdout, stderr } = await promisify(execFile)('sh', ['-ec', blocks.join('\n')], {
    cwd: shell.cwd,
    env,
  });
  assert.match(stderr, /\nnext\n( {2}\w{3} \d{4}-\d\d-\d\d 02:00:00 GMT\+0[12]:00\n){5}/);
  assert.equal(stdout.match(/460\.4/g)?.length, 2, 'the outputs of the run, when it ended and later');
  assert.match(stdout, /completed +1 /);
  assert.equal(receiver.received.length, 0, "a night that succeeds is nobody's business");

  const [job] = (await server.client.jobs.list()).items;
  assert(job !== undefined && 'notebookId' in job.target);
  const { id, updatedAt } = await server.client.notebooks.get(job.target.notebookId);
  await server.client.notebooks.update(id, {
    expectedUpdatedAt: updatedAt,
    serialization: { cells: [{ cell_id: 'a', code: '1 / 0' }] },
  });
  await server.client.jobs.run(job.id);
  const { type, data } = await eventually(
    'the receiver has heard',
    async () => receiver.received[0]?.payload,
  );
  assert.deepEqual([type, data.jobId], ['run.failed', job.id]);
});
