import assert from 'node:assert/strict';
import test from 'node:test';
import { Removals } from '#storage/removals.ts';
import { eventually } from '#test/support/processes.ts';
import { temporaryStore } from '#test/support/store/temporary-store.ts';

const thing = (id: string) => ({ kind: 'thing', workspaceId: 'ws_1', home: 'nb_1', id });

test('a failed removal does not stop other removals, and is tried again after the next deletion', async (t) => {
  const { store } = await temporaryStore(t);
  const faults: unknown[] = [];
  const fault = new Error('the thing could not be removed');
  const failing = new Set(['a']);
  const open = () => {
    const removals = new Removals(store, (error) => faults.push(error));
    removals.define('thing', (_, id) => {
      if (failing.has(id)) throw fault;
      return true;
    });
    return removals;
  };
  const first = open();
  store.write((tx) => {
    for (const id of ['a', 'b', 'c']) first.add(tx, thing(id));
  });
  await eventually('those that were noted after it are removed', () => !first.isPending(thing('c')));
  assert.deepEqual(faults, [fault]);
  assert.deepEqual([first.isPending(thing('a')), first.isPending(thing('b'))], [true, false]);

  store.write((tx) => {
    for (const id of ['d', 'e']) first.add(tx, thing(id));
  });
  first[Symbol.dispose]();
  await store.durable();
  const second = open(); // as after a restart: they are read from the store
  second.resume();
  await eventually('those that are stored after it are removed', () => !second.isPending(thing('e')));
  assert.equal(second.isPending(thing('a')), true);

  failing.clear();
  let noted = 0;
  await eventually('it is removed, too', () => {
    store.write((tx) => second.add(tx, thing(`later ${noted++}`)));
    return !second.isPending(thing('a'));
  });
  second[Symbol.dispose]();
  await store.durable();
});
