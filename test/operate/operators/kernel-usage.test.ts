import assert from 'node:assert/strict';
import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import test, { type TestContext } from 'node:test';
import { freshForMs, KernelSampler, type KernelWithProcess } from '#src/operate/operators/kernel-usage.ts';
import { eventually } from '#test/support/processes.ts';

/** A shell that has started another process, and ends with the test. */
async function startPair(t: TestContext): Promise<ChildProcess & { readonly pid: number }> {
  const child = spawn('sh', ['-c', 'sleep 600 & echo begun; wait'], {
    stdio: ['ignore', 'pipe', 'ignore'],
    detached: true,
  });
  t.after(() => process.kill(-child.pid!, 'SIGKILL'));
  await once(child.stdout!, 'data');
  return Object.assign(child, { pid: child.pid! });
}

test('the usage of a kernel includes all its processes, also for a kernel made from a spare process', async (t) => {
  const places: KernelWithProcess[] = [];
  const place = ({ pid }: { readonly pid: number }) => ({
    workspaceId: 'ws_1',
    sessionId: `nb_${pid}`,
    node: null,
    pid,
  });
  const sampler = new KernelSampler(() => places);
  assert.deepEqual((await sampler.sample()).kernels, []);
  const [first, second] = [await startPair(t), await startPair(t)];
  places.push(place(first));
  const one = await eventually('the first is measured', async () => {
    const { kernels } = await sampler.sample();
    return kernels.length === 1 ? kernels[0] : undefined;
  });
  places.push(place(second));
  const both = await eventually('both are measured', async () => {
    const { kernels } = await sampler.sample();
    return kernels.length === 2 ? kernels : undefined;
  });
  const memory = both.map(({ memoryBytes }) => memoryBytes);
  assert.ok(memory[0]! >= memory[1]!, 'the one with the most memory comes first');
  // The same program with the same child: if the child were missing from either measurement, they
  // would differ.
  assert.ok(memory[1]! > memory[0]! * 0.75, memory.join());
  assert.ok(memory[0]! < one.memoryBytes * 1.5, memory.join());
});

test('simultaneous requests share a sample', async () => {
  const sampler = new KernelSampler(() => []);
  const [one, other] = await Promise.all([sampler.sample(), sampler.sample()]);
  assert.equal(one, other);
  assert.equal(await sampler.sample(), one);
});

test('when processes cannot be read the sample fails, and the next request takes a new sample', async () => {
  let isReadable = false;
  const sampler = new KernelSampler(() => {
    if (!isReadable) throw new Error('too many open files');
    return [];
  });
  await assert.rejects(sampler.sample(), { message: 'too many open files' });
  isReadable = true;
  assert.deepEqual((await sampler.sample()).kernels, []);
});

test('a sample is shared for 150 times its duration, between half a second and five', () => {
  assert.deepEqual([0, 3, 4, 20, 33, 34, 1000].map(freshForMs), [500, 500, 600, 3000, 4950, 5000, 5000]);
});
