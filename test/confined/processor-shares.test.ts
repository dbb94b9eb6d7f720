/**
 * The parts of the processors that workspaces get. The control groups are plain folders without effect, so these tests see on any
 * machine the weights that are written into them.
 */
import assert from 'node:assert/strict';
import {
  copyFileSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  statSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { test } from 'node:test';
import { setImmediate as nextTurn } from 'node:timers/promises';
import { HostRelay } from '#src/cluster/primary/host-relay.ts';
import { RelayedHosts } from '#src/cluster/worker/relayed-zygote.ts';
import { findHostScript } from '#src/confined/processes/host/host-script.ts';
import { ProcessorShares } from '#src/confined/processes/host/processor-shares.ts';
import { eventually } from '#test/support/processes.ts';
import { openKernel, startTestHost, type TestKernel } from './kernel-fixture.ts';

const WHOLE = 1000;
/** A kernel host whose control groups are folders below `groups`. */
const hostWith = (groups: string) => `
import os, shutil, sys
sys.path.insert(0, ${JSON.stringify(dirname(findHostScript()))})
import zygote
from forking import cgroups

class StandIn(cgroups.Group):
    def reopen(self):
        open(os.path.join(self.path, "cgroup.procs"), "a").close()
        super().reopen()

    def remove(self):
        shutil.rmtree(self.path, ignore_errors=True)
        return True

cgroups.Group = StandIn
cgroups.find = lambda: cgroups.Groups(${JSON.stringify(groups)}, cgroups.VERSION_2, ${WHOLE})
zygote.main()
`;

test('the busy kernels of a workspace share the weight of one workspace, even in different workers', async (t) => {
  const folder = mkdtempSync(join(tmpdir(), 'troupe-shares-'));
  t.after(() => rmSync(folder, { recursive: true, force: true }));
  const [groups, scripts, gates] = ['groups', 'scripts', 'gates'].map((name) => join(folder, name));
  for (const path of [groups, scripts, gates]) mkdirSync(path!);
  const hostScript = join(scripts!, 'zygote.py');
  writeFileSync(hostScript, hostWith(groups!));
  copyFileSync(join(dirname(findHostScript()), 'user_config.json'), join(scripts!, 'user_config.json'));

  // Two workers, and the primary that has the kernel host.
  const options = { hostScript, limits: { memoryBytes: 2 ** 30 }, confinement: 'off' } as const;
  const handlers = [0, 1].map(() => new Map<string, (report: never) => void>());
  const relay = new HostRelay('usual', (worker, report) =>
    handlers[worker]!.get(report.op)?.(report as never),
  );
  await using primary = await startTestHost({
    ...options,
    startZygote: relay.start,
    shares: new ProcessorShares(),
  });
  assert.match(primary.hello.confinement, /memory by cgroup, processors shared by workspaces/);
  const workerOf = (worker: number) =>
    startTestHost({
      ...options,
      startZygote: new RelayedHosts({
        send: (order: never) => relay.take(worker, order),
        on: (op: string, handler: (report: never) => void) => handlers[worker]!.set(op, handler),
      } as never).starterOf('usual'),
    });
  await using first = await workerOf(0);
  await using second = await workerOf(1);

  const fileOf = (group: number) => {
    const name = readdirSync(groups!).find((one) => one.split('-')[2] === String(group));
    return name === undefined ? undefined : join(groups!, name, 'cpu.weight');
  };
  /** Groups have the numbers of their kernels. The weight of a group that was removed is undefined. */
  const weights = () =>
    [...Array(10).keys()].map((group) => {
      const path = fileOf(group);
      return path !== undefined && existsSync(path) ? Number(readFileSync(path, 'utf8')) : undefined;
    });
  const become = async (what: string, lonely: number, many: readonly (number | undefined)[]) => {
    const wanted = JSON.stringify([lonely, ...many].map((weight) => weight ?? null));
    await eventually(`${what}: ${wanted}`, () => JSON.stringify(weights()) === wanted);
  };
  const times = <T>(count: number, value: T): T[] => Array<T>(count).fill(value);

  const kernels: TestKernel[] = [];
  for (let at = 0; at < 10; at++) {
    const gate = join(gates!, String(at));
    const wait = `import os, time\nwhile not os.path.exists(${JSON.stringify(gate)}): time.sleep(0.01)`;
    const workspaceId = at === 0 ? 'with one kernel' : 'with nine kernels';
    kernels.push(await openKernel(at % 2 === 0 ? first : second, { wait }, { id: `k${at}`, workspaceId }));
  }
  await become('no kernel is busy', WHOLE, times(9, 111));
  const untouched = statSync(fileOf(0)!).mtimeMs;
  const runs: Promise<unknown>[] = [];
  const run = (at: number) => {
    const running = kernels[at]!.run(['wait']);
    running.catch(() => undefined); // some are ended
    runs.push(running);
  };
  run(0);
  run(1);
  await become('one is busy', WHOLE, [1000, ...times(8, 111)]);
  for (let at = 2; at <= 8; at++) run(at);
  await become('eight are busy', WHOLE, [...times(8, 125), 111]);
  run(9);
  await become('nine are busy', WHOLE, times(9, 111));
  writeFileSync(join(gates!, '9'), '');
  await runs[9];
  await become('one run has ended', WHOLE, [...times(8, 125), 111]);
  kernels[8]!.kernel.kill();
  await become('a busy kernel was killed', WHOLE, [...times(7, 143), undefined, 125]);
  kernels[7]!.kernel.stop();
  await become('a session was closed', WHOLE, [...times(6, 167), undefined, undefined, 143]);
  kernels[9]!.kernel.stop();
  await become('a session without a run was closed', WHOLE, [...times(6, 167), ...times(3, undefined)]);
  assert.equal(
    statSync(fileOf(0)!).mtimeMs,
    untouched,
    'the weight of a kernel that is alone in its workspace is never written',
  );
});

test('a change of one of a thousand kernels of a workspace writes few weights', async () => {
  const shares = new ProcessorShares();
  const written = new Map<string, number>();
  let count = 0;
  const taker = {
    whole: WHOLE,
    weigh(weights: Readonly<Record<string, number>>) {
      assert.ok(Object.keys(weights).length <= 500);
      for (const [id, weight] of Object.entries(weights)) {
        written.set(id, weight);
        count++;
      }
    },
  };
  for (let at = 0; at < 1000; at++) shares.enter(`k${at}`, 'w', taker);
  for (let at = 0; at < 1000; at++) shares.setBusy(`k${at}`, true);
  await eventually('all weights', () => written.size === 1000);
  assert.deepEqual(new Set(written.values()), new Set([1]));
  for (let at = 100; at < 1000; at++) shares.leave(`k${at}`);
  await eventually('the weights of those that are left', () => written.get('k99') !== 1);
  assert.equal(written.get('k0'), 10, 'a hundred kernels still divide the weight');
  count = 0;
  shares.setBusy('k0', false);
  shares.enter('last', 'w', taker);
  await eventually('the new weight', () => written.has('last'));
  await nextTurn();
  assert.ok(count <= 2, `${count} were written`);
});
