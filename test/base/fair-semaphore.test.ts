import assert from 'node:assert/strict';
import test from 'node:test';
import { FairSemaphore } from '#src/base/async/fair-semaphore.ts';

/**
 * Pieces of work that last until the test ends them by name, and their names in the order in which
 * they began.
 */
function workshop(semaphore: FairSemaphore) {
  const begun: string[] = [];
  const ends = new Map<string, (error?: Error) => void>();
  const start = (key: string, name: string) =>
    semaphore.pass(key, () => {
      begun.push(name);
      return new Promise<string>((resolve, reject) => {
        ends.set(name, (error) => (error ? reject(error) : resolve(name)));
      });
    });
  const end = async (name: string, work: Promise<unknown>, error?: Error) => {
    ends.get(name)!(error);
    await work.catch(() => undefined);
  };
  return { begun, start, end };
}

test('one key never takes all places: other keys get the rest', async () => {
  const semaphore = new FairSemaphore({ width: 3, widthOfKey: 2, queueOfKey: 9 });
  const { begun, start, end } = workshop(semaphore);
  const hadRoom: boolean[] = [];
  const works = ['a1', 'a2', 'a3', 'b1'].map((name) => {
    hadRoom.push(semaphore.hasRoom(name[0]!));
    return start(name[0]!, name);
  });
  await Promise.resolve();
  assert.deepEqual(hadRoom, [true, true, false, true]);
  assert.deepEqual(begun, ['a1', 'a2', 'b1']);
  await end('b1', works[3]!);
  assert.deepEqual(begun, ['a1', 'a2', 'b1'], 'a free place is not for a key that has its part');
  await end('a1', works[0]!);
  assert.deepEqual(begun, ['a1', 'a2', 'b1', 'a3']);
});

test('keys that wait take turns, each in the order of its arrival', async () => {
  const { begun, start, end } = workshop(new FairSemaphore({ width: 1, widthOfKey: 1, queueOfKey: 9 }));
  const names = ['a1', 'a2', 'a3', 'a4', 'b1', 'b2', 'c1'];
  const works = new Map(names.map((name) => [name, start(name[0]!, name)]));
  for (let i = 0; i < names.length; i++) {
    await Promise.resolve();
    await end(begun[i]!, works.get(begun[i]!)!);
  }
  assert.deepEqual(begun, ['a1', 'a2', 'b1', 'c1', 'a3', 'b2', 'a4']);
});

test('the waiting work of a key has a limit, further work is refused, and other keys can still wait', async () => {
  const { begun, start, end } = workshop(new FairSemaphore({ width: 1, widthOfKey: 1, queueOfKey: 2 }));
  const works = ['a1', 'a2', 'a3'].map((name) => start('a', name));
  await assert.rejects(start('a', 'a4'), { code: 'unavailable' });
  const other = start('b', 'b1');
  await end('a1', works[0]!, new Error('broken'));
  await assert.rejects(works[0]!, /broken/);
  await end('a2', works[1]!);
  await end('b1', other);
  await end('a3', works[2]!);
  assert.deepEqual(begun, ['a1', 'a2', 'b1', 'a3']);
});

test('work of one key leaves places and room in the queue for other keys, and the whole queue has a limit', async () => {
  const limits = { width: 2, widthOfKey: 1, queueOfKey: 2, queue: 3, refusal: 'Too many.' };
  const semaphore = new FairSemaphore(limits);
  const { begun, start, end } = workshop(semaphore);
  const works = ['a1', 'a2', 'a3'].map((name) => start('a', name));
  await assert.rejects(start('a', 'a4'), { code: 'unavailable', message: 'Too many.' });
  const other = start('b', 'b1');
  await Promise.resolve();
  assert.deepEqual(begun, ['a1', 'b1']);
  const waiting = start('c', 'c1');
  await assert.rejects(start('d', 'd1'), { code: 'unavailable' });
  await end('b1', other);
  await Promise.resolve();
  assert.deepEqual(begun, ['a1', 'b1', 'c1']);
  const again = start('d', 'd1');
  await end('a1', works[0]!);
  await end('c1', waiting);
  await Promise.resolve();
  assert.deepEqual(begun.toSorted(), ['a1', 'a2', 'b1', 'c1', 'd1']);
  await end('a2', works[1]!);
  await end('d1', again);
  await Promise.resolve();
  await end('a3', works[2]!);
});

test('a held place is given back once, and a key without a place can always get a place', async () => {
  const semaphore = new FairSemaphore({ width: 2, widthOfKey: 2, queueOfKey: 9, alwaysOne: true });
  const places = [semaphore.tryHold('a'), semaphore.tryHold('a')];
  assert.equal(semaphore.tryHold('a'), undefined);
  const beyond = semaphore.tryHold('b');
  assert.ok(beyond, 'although both places are taken');
  assert.equal(semaphore.tryHold('b'), undefined);
  const waiting = semaphore.hold('a');
  let isHeld = false;
  void waiting.then(() => {
    isHeld = true;
  });
  places[0]![Symbol.dispose]();
  assert.throws(() => places[0]![Symbol.dispose](), /A place is given back once\. Broken by: a/);
  await Promise.resolve();
  assert.equal(isHeld, false, 'one is still beyond the width');
  beyond[Symbol.dispose]();
  (await waiting)[Symbol.dispose]();
  places[1]![Symbol.dispose]();
  assert.ok(semaphore.tryHold('a') && semaphore.tryHold('a'));
});

const settled = () => new Promise((resolve) => setImmediate(resolve));

test('a key that gives back its only place gets the next place first, and new work does not overtake waiting work', async () => {
  const semaphore = new FairSemaphore({ width: 4, widthOfKey: 2, queueOfKey: 9, alwaysOne: true });
  const [a] = ['a', 'a', 'b'].map((key) => semaphore.tryHold(key));
  const d = semaphore.tryHold('d')!;
  const got: string[] = [];
  const waiting = ['b', 'd', 'd'].map(async (key) => {
    const place = await semaphore.hold(key);
    got.push(key);
    return place;
  });
  d[Symbol.dispose]();
  await settled();
  assert.deepEqual(got, ['d'], 'although b waits for longer');
  assert.deepEqual([semaphore.hasRoom('d'), semaphore.tryHold('d')], [false, undefined]);
  (await waiting[1]!)[Symbol.dispose]();
  await settled();
  assert.deepEqual(got, ['d', 'd']);
  a![Symbol.dispose]();
  await waiting[0];
  assert.deepEqual(got, ['d', 'd', 'b']);
});
