import assert from 'node:assert/strict';
import { readdirSync } from 'node:fs';
import { after, before, test } from 'node:test';
import { FORGE } from '#test/support/forged-frames.ts';
import { eventually } from '#test/support/processes.ts';
import { openKernel, startTestHost, type TestHost } from './kernel-fixture.ts';

let host: TestHost;
before(async () => {
  host = await startTestHost();
});
after(() => host[Symbol.asyncDispose]());

for (const [name, code, reason] of [
  ['a huge length', 'forge(struct.pack("<IB", 0xFFFFFFFF, 0))', 'a frame of 4294967295 bytes'],
  ['a length above the limit', 'forge(struct.pack("<IB", 64 * 2**20 + 1, 0))', 'a frame of 67108865 bytes'],
  ['an empty frame', 'forge(struct.pack("<I", 0) + b"xxxx")', 'an empty frame'],
  ['garbage instead of JSON', 'forge(frame(b"\\xff\\xfe{{{"))', 'a frame that is not JSON'],
  ['a bomb of brackets', 'forge(frame(b"[" * 5_000_000))', 'a frame that is nested too deeply'],
  ['a bomb of values', 'forge(frame(b"[" + b"[]," * 5_000_000 + b"[]]"))', 'a frame of too many values'],
  [
    'a known message of a wrong shape',
    'forge(frame(dict(op="cell-op", cell_id=7)))',
    'cell_id is not a string',
  ],
  ['a message that is no object', 'forge(frame([]))', 'the message is not an object'],
  ['a channel of ours', 'forge(frame({}, channel=1))', 'a frame on channel 1'],
] as const) {
  test(`${name} ends the kernel that sent it, and no other`, async () => {
    const [guilty, innocent] = [
      await openKernel(host, { f: FORGE, g: code }),
      await openKernel(host, { a: '1' }),
    ];
    await guilty.run(['f']);
    await assert.rejects(guilty.run(['g']));
    assert.deepEqual(await guilty.exited, {
      cause: 'kernel_protocol_error',
      code: null,
      signal: null,
      message: `The kernel sent ${reason}.`,
    });
    assert.equal((await innocent.run(['a'])).statuses.a, 'success');
    assert.equal(host.host.state, 'up');
    innocent.kernel.kill();
  });
}

test('a frame that announces a great length and comes byte by byte harms no other session', async () => {
  const guilty = await openKernel(host, {
    f: FORGE,
    g: 'forge(struct.pack("<IB", 60 * 2**20, 0))\nfor _ in range(2000): forge(b"x")\nos._exit(4)',
  });
  await guilty.run(['f']);
  await assert.rejects(guilty.run(['g']));
  assert.deepEqual([(await guilty.exited).cause, guilty.exits[0]?.code], ['kernel_exited', 4]);
});

test('a forged end of a command that is not in flight is ignored', async () => {
  const kernel = await openKernel(host, {
    f: FORGE,
    g: 'for seq in (-1, 0, 1, 2, 4, 1e9): forge(done(seq))\nx = 1',
  });
  await kernel.run(['f']);
  const run = await kernel.run(['g']);
  assert.deepEqual([run.done.seq, run.done.type, run.statuses.g], [3, 'ExecuteCellsCommand', 'success']);
  const seqs = kernel.messages.flatMap((m) => (m.op === 'bridge-done' ? [m.seq] : []));
  assert.deepEqual(seqs, [1, 2, 3]);
  kernel.kernel.kill();
});

test("a forged end of a kernel's own command deceives only its own notebook, until the cell runs again", async () => {
  const kernel = await openKernel(host, {
    f: FORGE,
    g: 'if "again" not in globals(): forge(done(3, dict(g=["success", False, []])))\nimport time\ntime.sleep(0.05)\n1 / 0',
    a: 'again = 1',
  });
  await kernel.run(['f']);
  assert.equal((await kernel.run(['g'])).done.type, 'Forged');
  const other = await kernel.run(['a']);
  assert.deepEqual([other.done.seq, other.statuses.a, other.statuses.g], [4, 'success', 'success']);
  const next = await kernel.run(['g']);
  assert.deepEqual([next.done.seq, next.statuses.g], [5, 'exception']);
  kernel.kernel.kill();
});

test('a kernel that closes its socket counts as ended, though its process still runs', async () => {
  const kernel = await openKernel(host, {
    f: FORGE,
    g: 'kernel_socket.shutdown(socket.SHUT_RDWR)\nimport time\ntime.sleep(600)',
  });
  await kernel.run(['f']);
  await assert.rejects(kernel.run(['g']));
  assert.match((await kernel.exited).cause, /^kernel_(exited|killed)$/);
});

test('file descriptors that a kernel sends with its frames are not accepted', async () => {
  const send =
    'ends = os.pipe()\nsocket.send_fds(kernel_socket, [frame(dict(op="nothing"))], list(ends) * 50)';
  const kernel = await openKernel(host, { a: `${FORGE}${send}`, b: '1' });
  const descriptors = () => readdirSync('/proc/self/fd').length;
  const before = descriptors();
  assert.deepEqual((await kernel.run(['a'])).statuses, { a: 'success', b: null });
  assert.deepEqual((await kernel.run(['b'])).statuses, { a: 'success', b: 'success' });
  // A file that something else reads is open for a moment.
  await eventually('no descriptor is left of them', () => descriptors() <= before);
  kernel.kernel.kill();
});

test('each change of the document after many quick messages has a batch of its own', async () => {
  const kernel = await openKernel(host, {
    f: FORGE,
    g: `change = dict(source="code-mode", changes=[dict(type="set-name", cellId="f", name="n")])
forge(frame(dict(op="nothing")) * 5000 + frame(dict(op="notebook-document-transaction", transaction=change)) * 20)`,
  });
  await kernel.run(['f']);
  await kernel.run(['g']);
  const batches = kernel.batches.map((length) => kernel.messages.splice(0, length));
  const changes = batches.map(
    (batch) =>
      batch.filter((m) => m.op === 'notebook-document-transaction' && m.source === 'code-mode').length,
  );
  assert.deepEqual(
    changes.filter((count) => count > 0),
    Array.from({ length: 20 }, () => 1),
  );
  kernel.kernel.kill();
});
