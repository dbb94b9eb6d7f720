/**
 * Sets two actors and forty records to the same number in every turn of the event loop, and prints each number that is
 * durable, until it is killed. Its argument is the directory of the store.
 */
import { openStore } from '#storage/open-store.ts';
import { box, put, startBoxes, WORKSPACE } from '#test/runtime/actors/boxes.ts';
import { PAIRS, pairRecords } from './pairs.ts';

const store = await openStore(process.argv[2]!, (error) => {
  throw error;
});
const { actors } = startBoxes({ after: () => undefined }, store);
for (const id of ['left', 'right']) {
  if (actors.peek(box(id)) === undefined) actors.spawn(box(id), { id });
}

function turn(n: number): void {
  for (const id of ['left', 'right']) {
    actors.tell(box(id), { type: 'take' });
    actors.ask(box(id), put(String(n)));
  }
  for (let i = 0; i < PAIRS; i++) store.write((tx) => tx.put(pairRecords, n, WORKSPACE, `p${i}`));
  void store.durable()?.then(() => process.stdout.write(`${n}\n`));
  setImmediate(turn, n + 1);
}
turn(1);
