// tier: whole, because it attacks the confinement from many sides; as-this-user.test.ts stays in the gate
/** Notebooks that take all memory, where control groups count it and where only rlimits do. */
import assert from 'node:assert/strict';
import { type TestContext, test } from 'node:test';
import { openNotebook } from '#test/support/notebook-fixture.ts';
import { type AttackedServer, obstacle, startAttacked, type User } from './attacked-server.ts';

const MIB = 1024;
const CELLS = {
  greedy: 'blocks = []\nwhile True: blocks.append(b"x" * (64 << 20))',
  children:
    'import os\nborn = []\nfor _ in range(8):\n    pid = os.fork()\n    if pid == 0:\n' +
    `        own = b"x" * (${MIB / 4} << 20)\n        os.kill(os.getpid(), 19)\n    born.append(pid)\n` +
    'ends = [os.waitpid(pid, os.WUNTRACED)[1] for pid in born]\nprint(sum(os.WIFSIGNALED(end) for end in ends))',
  shared:
    'import mmap as _mmap\n_map = _mmap.mmap(-1, 2 << 30)\n' +
    'for _at in range(0, 2 << 30, 4096): _map[_at] = 1',
  spread:
    'import os as _os, time as _time\nfor _ in range(5):\n    if _os.fork() == 0:\n' +
    '        _own = b"x" * (256 << 20)\n        _time.sleep(600)\n_time.sleep(600)',
  native: 'import polars\nlarge = polars.zeros(10**9, eager=True)',
  after: '"still here"',
};

async function start(t: TestContext, without: string, user: User = 'this user'): Promise<AttackedServer> {
  return startAttacked(t, {
    user,
    without,
    settings: { TROUPE_KERNEL_MEMORY_MB: String(MIB) },
  });
}

test('a notebook that uses more memory than its limit loses its kernel, and its run names the limit', async (t) => {
  const server = await start(t, '');
  if (!server.confinement.includes('memory by cgroup')) {
    t.skip('no control group is ours to divide here');
    return;
  }
  const [bystander, notebook] = [
    await openNotebook(server.neighbour, CELLS),
    await openNotebook(server, CELLS),
  ];
  await bystander.run(['after']);
  const run = await notebook.run(['greedy']);
  assert.deepEqual([run.status, run.error?.code], ['failed', 'kernel_out_of_memory']);
  assert.equal(
    run.error?.message,
    `The kernel was killed, because it reached its limit of ${MIB} MiB of memory.`,
  );
  await notebook.client.notebookSessions.waitUntilReady(notebook.id);
  const printed = JSON.stringify(await notebook.run(['children']));
  assert.match(printed, /"data":"[1-8]\\n"/, 'what all processes use together is what counts');
  assert.equal((await notebook.run(['after'])).status, 'completed');
  assert.equal((await bystander.run(['after'])).status, 'completed');
  assert.equal((await bystander.record()).kernel !== null, true);
});

test('without control groups, running out of memory is an error of the cell, and the kernel lives on', async (t) => {
  const notebook = await openNotebook(await start(t, 'cgroups'), CELLS);
  const run = await notebook.run(['greedy']);
  assert.deepEqual([run.status, run.error?.code], ['failed', 'cell_failed']);
  assert.match(run.error!.message, /^MemoryError.*\(The limit of memory is 1024 MiB\.\)$/);
  assert.equal((await notebook.run(['after'])).status, 'completed');
});

for (const [user, without] of [
  ['this user', 'cgroups'],
  ['this user', 'cgroups,namespaces'],
  ['an ordinary user', 'cgroups'],
] as const) {
  const name = `without control groups a notebook of ${user} that uses more memory in shared maps or in children than its limit loses its kernel (${without})`;
  test(name, { skip: obstacle(user) ?? false }, async (t) => {
    const server = await start(t, without, user);
    const [bystander, notebook] = [
      await openNotebook(server.neighbour, CELLS),
      await openNotebook(server, CELLS),
    ];
    for (const cellId of ['shared', 'spread']) {
      const { status, error } = await notebook.run([cellId]);
      assert.deepEqual([status, error?.code], ['failed', 'kernel_out_of_memory']);
      assert.equal(
        error?.message,
        `The kernel was killed, because it reached its limit of ${MIB} MiB of memory.`,
      );
      await notebook.client.notebookSessions.waitUntilReady(notebook.id);
      assert.equal((await notebook.run(['after'])).status, 'completed');
    }
    assert.equal((await bystander.run(['after'])).status, 'completed');
  });
}

test('a library that aborts when memory runs out ends its kernel, and the run names the limit', async (t) => {
  const notebook = await openNotebook(await start(t, 'cgroups'), CELLS);
  const run = await notebook.run(['native']);
  assert.deepEqual([run.status, run.error?.code], ['failed', 'kernel_killed']);
  assert.match(run.error!.message, /SIGABRT, perhaps because it reached its limit of 1024 MiB of memory\.$/);
  await notebook.client.notebookSessions.waitUntilReady(notebook.id);
  assert.equal((await notebook.run(['after'])).status, 'completed');
});
