import assert from 'node:assert/strict';
import { execFile } from 'node:child_process';
import { EventEmitter, once } from 'node:events';
import { writeFileSync } from 'node:fs';
import { createServer, request } from 'node:http';
import type { AddressInfo } from 'node:net';
import { join } from 'node:path';
import test, { type TestContext } from 'node:test';
import { promisify } from 'node:util';
import { startServer } from '#test/support/server-fixture.ts';
import { marimoFile } from './notebook-file.ts';
import { MAIN, Shell } from './troupe-process.ts';

const server = await startServer(test);
const { client } = server;
const shell = new Shell(test, server);

const ENDLESS = `import time
for n in range(1000):
    print("tick", n, flush=True)
    time.sleep(0.05)`;

function file(name: string): string {
  writeFileSync(join(shell.cwd, name), marimoFile({ endless: ENDLESS }));
  return name;
}

/** Returns the states of the session and of the only run of the notebook with this title. */
async function endOf(title: string): Promise<string[]> {
  const [notebook] = (await client.notebooks.list({ title })).items;
  const { status } = await client.notebookSessions.get(notebook?.id ?? '');
  const runs = (await client.runs.list({ sessionId: notebook?.id })).items;
  return [status, ...runs.map((run) => run.status)];
}

test('a run whose terminal goes away is cancelled, and its session closed', async () => {
  const child = shell.start(['run', file('terminal.py')]);
  await child.until('tick 1');
  // A shell sends the signal to its jobs, and the system sends it to the programs that have the
  // terminal.
  child.hangUp();
  child.hangUp();
  assert.equal((await child.ended).exitCode, 130);
  assert.deepEqual(await endOf('terminal'), ['closed', 'cancelled']);
});

test('a run whose output nobody reads any more is cancelled, and its session closed', async () => {
  const child = shell.start(['run', file('head.py')]);
  await child.until('tick 1');
  child.stopReading();
  assert.equal((await child.ended).exitCode, 130);
  assert.deepEqual(await endOf('head'), ['closed', 'cancelled']);
});

test('a failed write of output is reported in one line', async () => {
  const command = `'${process.execPath}' '${MAIN}' config > /dev/full; echo $?`;
  const { PATH } = process.env;
  const { stdout, stderr } = await promisify(execFile)('sh', ['-c', command], {
    cwd: shell.cwd,
    env: { PATH },
  });
  assert.equal(stdout, '1\n');
  assert.equal(stderr, 'troupe: The output cannot be written: ENOSPC: no space left on device, write.\n');
});

/** A proxy in front of the server that delays the answer to a submission. */
async function holdingProxy(t: TestContext) {
  const events = new EventEmitter();
  const held = once(events, 'held');
  const released = once(events, 'released');
  const proxy = createServer((incoming, outgoing) => {
    const { method = '', url = '', headers } = incoming;
    const forwarded = request(new URL(url, server.baseUrl), { method, headers }, async (answer) => {
      if (method === 'POST' && url.endsWith('/executions')) {
        events.emit('held');
        await released;
      }
      outgoing.writeHead(answer.statusCode ?? 0, answer.headers);
      answer.pipe(outgoing);
    });
    incoming.pipe(forwarded);
    outgoing.on('close', () => forwarded.destroy());
  });
  await new Promise<void>((resolve) => proxy.listen(0, '127.0.0.1', resolve));
  t.after(() => {
    proxy.closeAllConnections();
    proxy.close();
  });
  const baseUrl = `http://127.0.0.1:${(proxy.address() as AddressInfo).port}`;
  return { baseUrl, held, release: () => events.emit('released') };
}

test('Ctrl-C during the submission of a run cancels the run', async (t) => {
  const proxy = await holdingProxy(t);
  const child = shell.start(['run', file('submitted.py')], { env: { SERVICE_BASE_URL: proxy.baseUrl } });
  await proxy.held;
  child.interrupt();
  proxy.release();
  const { exitCode, err } = await child.ended;
  assert.equal(exitCode, 130, err);
  assert.match(err, /cancelling run_\w+; press Ctrl-C again/);
  assert.deepEqual(await endOf('submitted'), ['closed', 'cancelled']);
});
