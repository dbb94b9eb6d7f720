// tier: whole, because it attacks the confinement from many sides; as-this-user.test.ts stays in the gate
/**
 * Notebooks that use up a resource: each is stopped by its limit with an error that names the
 * limit, while another session continues.
 */
import assert from 'node:assert/strict';
import { readdirSync, readFileSync } from 'node:fs';
import { after, before, test } from 'node:test';
import { type OpenNotebook, openNotebook } from '#test/support/notebook-fixture.ts';
import { bounded, eventually } from '#test/support/processes.ts';
import { type AttackedServer, startAttacked } from './attacked-server.ts';

const LIMITS = {
  TROUPE_KERNEL_MEMORY_MB: '1024',
  TROUPE_KERNEL_PROCESSES: '64',
  TROUPE_KERNEL_OPEN_FILES: '128',
  TROUPE_KERNEL_FILE_MB: '8',
  TROUPE_KERNEL_CPU_S: '4',
};

let server: AttackedServer;
let bystander: OpenNotebook;
const cleanUps: (() => Promise<void>)[] = [];
before(async () => {
  server = await startAttacked(
    { after: (cleanUp) => cleanUps.unshift(cleanUp) },
    { user: 'this user', settings: LIMITS },
  );
  bystander = await openNotebook(server.neighbour, { a: '1 + 1' });
});
after(async () => {
  for (const cleanUp of cleanUps) await cleanUp();
});

/** Runs the cell in a kernel of its own, while requests to the other session are repeated. */
async function exhaust(code: string) {
  const notebook = await openNotebook(server, { greedy: code, after: '"still here"' });
  let over = false;
  const asking = (async () => {
    while (!over) {
      const run = bounded('a run of the other session ends', bystander.run(['a']), () => 'it waits');
      assert.equal((await run).status, 'completed');
    }
  })();
  const run = await notebook.run(['greedy']);
  over = true;
  await asking;
  return { notebook, run };
}

for (const [what, code, message] of [
  [
    'fill the disk',
    'with open("large", "wb") as file:\n    for _ in range(64): file.write(bytes(1 << 20))',
    /^OSError: \[Errno 27\] File too large \(The limit is 8 MiB for each file that a kernel writes\.\)$/,
  ],
  [
    'fork without end',
    'import os, time\nfor _ in range(2000):\n    if os.fork() == 0: time.sleep(600)',
    /^BlockingIOError: \[Errno 11\] .*\(The limit is 64 processes and threads for each kernel\.\)$/,
  ],
  [
    'open files without end',
    'kept = []\nwhile True: kept.append(open("/dev/null"))',
    /^OSError: \[Errno 24\] Too many open files: '\/dev\/null' \(The limit is 128 open files/,
  ],
] as const) {
  test(`a notebook that tries to ${what} gets an error that names the limit, and its kernel survives`, async () => {
    const { notebook, run } = await exhaust(code);
    assert.deepEqual([run.status, run.error?.code], ['failed', 'cell_failed']);
    assert.match(run.error!.message, message);
    assert.equal((await notebook.run(['after'])).status, 'completed');
    await notebook.close();
  });
}

test('a notebook that computes for ever loses its kernel, and its run names the reason', async () => {
  const { notebook, run } = await exhaust('while True: pass');
  assert.deepEqual([run.status, run.error?.code], ['failed', 'kernel_killed']);
  assert.match(run.error!.message, /reached its limit of 4 s of processor time\.$/);
  await notebook.client.notebookSessions.waitUntilReady(notebook.id);
  assert.equal((await notebook.run(['after'])).status, 'completed');
  await notebook.close();
});

test('a daemon does not outlive the session that started it', async () => {
  const mark = `60${process.pid}1`;
  const notebook = await openNotebook(server, {
    a: `import os
if os.fork() == 0:
    os.setsid()
    if os.fork() == 0: os.execvp("sleep", ["sleep", "${mark}"])
    os._exit(0)
os.wait()`,
  });
  assert.equal((await notebook.run(['a'])).status, 'completed');
  await eventually('the daemon runs', () => marked(mark) === 1);
  await notebook.close();
  await eventually('the daemon is gone', () => marked(mark) === 0);
});

test('the record of a session shows its limits', async () => {
  const { kernel } = await bystander.record();
  const { confinement, network, ...limits } = kernel ?? {};
  assert.match(String(confinement), /^(full|partial|none)$/);
  assert.equal(network, 'host');
  assert.deepEqual(limits, {
    memoryLimitMb: 1024,
    processLimit: 64,
    openFileLimit: 128,
    fileSizeLimitMb: 8,
    cpuLimitS: 4,
    notes: [],
  });
});

/** Returns how many processes have this text among their arguments. */
function marked(mark: string): number {
  return readdirSync('/proc').filter((pid) => {
    try {
      return /^\d+$/.test(pid) && readFileSync(`/proc/${pid}/cmdline`, 'latin1').split('\0').includes(mark);
    } catch {
      return false; // the process ended between the two readings
    }
  }).length;
}
