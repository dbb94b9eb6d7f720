// tier: test, because it makes a thousand commits, one after the other
/** The memory of hooks that fire jobs: how many ids of requests it holds, and what a deletion leaves. */
import assert from 'node:assert/strict';
import test, { type TestContext } from 'node:test';
import type { Principal } from '#src/base/caller/principal.ts';
import { newId } from '#src/base/ids.ts';
import type { Occurrence } from '#src/contract/wire/job.ts';
import { HooksIn, MAX_REMEMBERED } from '#src/hooks/hooks-in.ts';
import { ALONE } from '#src/runtime/homes/cluster.ts';
import { hookInAges, hookInFirings } from '#storage/records/hooks.ts';
import { Removals } from '#storage/removals.ts';
import { eventually } from '#test/support/processes.ts';
import { temporaryStore } from '#test/support/store/temporary-store.ts';

const WORKSPACE = 'ws_1';
const CALLER = { workspaceId: WORKSPACE, userId: 'ada' } as Principal;

test('a hook remembers the last thousand ids of its requests', async (t) => {
  const { fire, remembered } = await hookOf(t);
  const first = await fire('0');
  for (let at = 1; at < MAX_REMEMBERED; at++) await fire(String(at));
  assert.equal(await fire('0'), first);
  assert.equal(remembered(), MAX_REMEMBERED);
  await fire('one more');
  assert.equal(remembered(), MAX_REMEMBERED);
  assert.notEqual(await fire('0'), first);
});

test('a hook that is deleted leaves none of its ids', async (t) => {
  const { fire, remembered, remove } = await hookOf(t);
  for (let at = 0; at < 250; at++) await fire(String(at));
  remove();
  await eventually('nothing is left', () => remembered() === 0);
});

async function hookOf(t: TestContext) {
  const { store } = await temporaryStore(t);
  const removals = new Removals(store, (error) => assert.fail(String(error)));
  t.after(() => removals[Symbol.dispose]());
  const jobs = {
    controlled: () => ({
      homeId: 'nb_1',
      ownerId: 'ada',
      readsDatasources: false,
      createdAt: '',
      updatedAt: '',
    }),
    onDelete: () => undefined,
    fireByHook: () => ({ id: newId('occurrence') }) as unknown as Occurrence,
  };
  let secret = '';
  const vault = {
    seal: (_: unknown, __: string, ___: string, given: string) => {
      secret = given;
    },
    remove: () => undefined,
    open: () => secret,
  };
  const parts = { publicUrl: undefined, mayFire: () => true };
  const hooks = new HooksIn({ store, cluster: ALONE, removals }, jobs as never, vault, parts);
  const { id } = hooks.create(CALLER, 'job_1', null);
  await store.durable();
  const fire = async (webhookId: string) => {
    const proof = { authorization: `Bearer ${secret}`, webhookTimestamp: '', webhookSignature: '' };
    const request = { hookInId: id, webhookId, idempotencyKey: '', body: new Uint8Array(), ...proof };
    return (await hooks.fire(request)).id;
  };
  const countOf = (kind: typeof hookInAges | typeof hookInFirings) =>
    [...store.listKeys(kind, WORKSPACE, [id], 2 * MAX_REMEMBERED)].length;
  const remembered = () => {
    assert.equal(countOf(hookInFirings), countOf(hookInAges));
    return countOf(hookInAges);
  };
  return { fire, remembered, remove: () => hooks.delete(CALLER, 'job_1', id) };
}
