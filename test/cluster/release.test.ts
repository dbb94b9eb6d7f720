import assert from 'node:assert/strict';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { type TestContext, test } from 'node:test';
import { AsyncDisposableStack } from '#src/base/async/async-disposable-stack.ts';
import { Peers } from '#src/cluster/peers/peers.ts';
import type { ClusterChannel } from '#src/cluster/worker/channel.ts';
import { dealSlots, type Home, SLOTS, slotOf, withWorker } from '#src/runtime/homes/slots.ts';
import type { PlaneContext } from '#src/runtime/sessions/plane-context.ts';
import { joinCluster } from '#src/start/app/join-cluster.ts';
import { testContext } from '#test/support/test-context.ts';

type IsElsewhere = (workspaceId: string, id: string) => boolean;

const fail = () => assert.fail();
const TABLE = dealSlots([0, 1]);

/**
 * Worker 0 of two, whose actors and sessions record their calls. `active` are the homes in which an
 * actor or a session is alive, `working` the slots of other work.
 */
async function startWorker(t: TestContext, active: readonly Home[], working: readonly number[] = []) {
  const folder = mkdtempSync(join(tmpdir(), 'troupe-peers-'));
  const stack = new AsyncDisposableStack();
  t.after(async () => {
    await stack[Symbol.asyncDispose]();
    rmSync(folder, { recursive: true, force: true });
  });
  const membership = {
    worker: 0,
    size: 2,
    secret: Buffer.alloc(32, 'secret'),
    table: TABLE,
    isPrimarySilent: false,
    socketPath: (worker: number) => join(folder, `peer-${worker}.sock`),
  };
  const peers = new Peers(membership);
  let release = async (_count: number): Promise<readonly number[]> => [];
  const channel: ClusterChannel = {
    ...membership,
    servesProxies: false,
    onTable: () => undefined,
    onReleaseAsked: (listener) => {
      release = listener;
    },
    ask: fail,
    join: async () => 0,
    suspended: async () => undefined,
  };
  /** The homes that were released, according to the recorder. */
  const told: { readonly who: string; readonly isElsewhere: IsElsewhere }[] = [];
  const leaving = (who: string) => ({
    leaveTo: (isElsewhere: IsElsewhere) => void told.push({ who, isElsewhere }),
  });
  let stored: () => void = () => undefined;
  const durable = () =>
    new Promise<void>((resolve) => {
      stored = resolve;
    });
  const forwarding = joinCluster(
    testContext<PlaneContext>({
      store: { refresh: () => undefined, durable },
      runtime: { ...leaving('actors'), activeHomes: () => active },
    }),
    {
      member: { channel, peers },
      planes: [leaving('sessions'), leaving('conversations')],
      busySlots: () => working,
      makeMirror: fail,
    },
    stack,
  );
  await forwarding.join(fail, () => []);
  return { peers, told, release: (count: number) => release(count), stored: () => stored() };
}

/** Returns homes in different slots of worker 0. */
function homesHere(count: number) {
  const slots = new Map<number, { readonly workspaceId: string; readonly id: string }>();
  for (let n = 0; slots.size < count; n++) {
    const home = { workspaceId: `ws_${n}`, id: `nb_${n}` };
    const slot = slotOf(home.workspaceId, home.id);
    if (TABLE.owners[slot] === 0 && !slots.has(slot)) slots.set(slot, home);
  }
  return [...slots.values()];
}

test('a slot stays in its worker as long as one of its homes has a live object', async (t) => {
  const active = homesHere(3);
  const { release, stored } = await startWorker(t, active);
  const releasing = release(SLOTS);
  stored();
  const released = await releasing;
  const busy = active.map(({ workspaceId, id }) => slotOf(workspaceId, id)).sort((a, b) => a - b);
  const kept = TABLE.owners.flatMap((owner, slot) => (owner === 0 && !released.includes(slot) ? [slot] : []));
  assert.deepEqual(kept, busy);
});

test('a slot stays in its worker as long as an attempt of a job works there', async (t) => {
  const [home] = homesHere(1);
  assert.ok(home !== undefined);
  const slot = slotOf(home.workspaceId, home.id);
  const { release, stored } = await startWorker(t, [], [slot]);
  const releasing = release(SLOTS);
  stored();
  const released = await releasing;
  assert.deepEqual(
    TABLE.owners.flatMap((owner, at) => (owner === 0 && !released.includes(at) ? [at] : [])),
    [slot],
  );
});

test('the state of a home leaves memory with its slot, once all decisions about it are stored', async (t) => {
  const [gone, kept] = homesHere(2);
  assert.ok(gone !== undefined && kept !== undefined);
  const { peers, told, release, stored } = await startWorker(t, [kept]);
  const releasing = release(SLOTS);
  assert.equal(peers.owns(gone.workspaceId, gone.id), false, 'nothing new is taken at once');
  assert.equal(told.length, 0);
  stored();
  await releasing;
  assert.deepEqual(
    told.map(({ who }) => who),
    ['actors', 'sessions', 'conversations'],
  );
  for (const { isElsewhere } of told) {
    assert.equal(isElsewhere(gone.workspaceId, gone.id), true);
    assert.equal(isElsewhere(kept.workspaceId, kept.id), false);
  }
});

test('no state leaves memory when a newer table leaves the slots in this worker', async (t) => {
  const [home] = homesHere(1);
  assert.ok(home !== undefined);
  const { peers, told, release, stored } = await startWorker(t, []);
  const releasing = release(SLOTS);
  peers.useTable(withWorker(TABLE, 2));
  stored();
  assert.deepEqual(await releasing, []);
  for (const { isElsewhere } of told) assert.equal(isElsewhere(home.workspaceId, home.id), false);
  assert.equal(peers.owns(home.workspaceId, home.id), true);
});
