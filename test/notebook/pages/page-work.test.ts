import assert from 'node:assert/strict';
import test from 'node:test';
import { AppError } from '#src/base/errors/errors.ts';
import type { ElementCommand } from '#src/confined/processes/kernel/kernel.ts';
import type { LiveNotebook } from '#src/notebook/open/live-notebook.ts';
import { PageWork, type PageWorkPorts } from '#src/notebook/pages/page-work.ts';

const values = (...pairs: readonly (readonly [string, unknown])[]): ElementCommand => ({
  type: 'update-ui-element',
  objectIds: pairs.map(([id]) => id),
  values: pairs.map(([, value]) => value),
});

/** Returns work whose session is busy until `free` is called, with the commands that it was given. */
function workOf() {
  const given: ElementCommand[] = [];
  const discarded: string[] = [];
  let isBusy = true;
  let becameIdle = () => {};
  const idle = new Promise<void>((resolve) => {
    becameIdle = resolve;
  });
  const ports: PageWorkPorts = {
    submit: () => undefined,
    element: async (_, command) => {
      if (isBusy) throw new AppError('session_busy', 'The session is busy.');
      given.push(command());
    },
    describe: (error) => assert.fail(String(error)),
    isClosed: () => false,
    interrupt: () => {},
    discardFiles: (ids) => discarded.push(...ids),
  };
  const events = {
    shown: () => {},
    refused: () => {},
    idle: () => {
      if (work.isIdle) becameIdle();
    },
  };
  const work: PageWork = new PageWork({} as LiveNotebook, ports, events);
  const free = () => {
    isBusy = false;
    work.wake();
  };
  return { work, given, discarded, idle, free };
}

test('waiting values of elements are merged to the last value of each element, and other commands keep their place', async () => {
  const { work, given, idle, free } = workOf();
  const call = {
    type: 'invoke-function',
    functionCallId: '1',
    namespace: 'n',
    functionName: 'f',
    args: {},
  } as const;
  work.element('ann', values(['a-0', 1]));
  work.element('ann', values(['a-0', 2], ['b-0', 1]));
  work.element('ann', call);
  work.element('ann', values(['a-0', 3]));
  free();
  await idle;
  assert.deepEqual(given, [values(['a-0', 2], ['b-0', 1]), call, values(['a-0', 3])]);
});

test('waiting changes of one widget are merged with their binary values, and messages to the widget keep their place', async () => {
  const { work, given, idle, free } = workOf();
  const change = (
    state: Readonly<Record<string, unknown>>,
    bufferPaths: readonly (readonly string[])[] = [],
    buffers: readonly string[] = [],
    modelId = 'm',
  ) => ({ type: 'model', modelId, message: { method: 'update', state, bufferPaths }, buffers }) as const;
  const custom = {
    type: 'model',
    modelId: 'm',
    message: { method: 'custom', content: 1 },
    buffers: [],
  } as const;
  const picture = [['picture']] as const;
  work.element('ann', change({ a: 1, picture: null }, picture, ['b25l']));
  work.element('ann', change({ a: 2, b: 1 }));
  work.element('ann', change({ picture: null }, picture, ['dHdv']));
  work.element('ann', change({ a: 3 }, [], [], 'other'));
  work.element('ann', custom);
  work.element('ann', change({ a: 4 }));
  free();
  await idle;
  assert.deepEqual(given, [
    change({ a: 2, b: 1, picture: null }, picture, ['dHdv']),
    change({ a: 3 }, [], [], 'other'),
    custom,
    change({ a: 4 }),
  ]);
});

/** Returns a value that counts how often it is read, which is how values are counted. */
function countedValue(count: { times: number }): unknown {
  return {
    get text() {
      count.times++;
      return 'x'.repeat(100);
    },
  };
}

test('a value that joins waiting values is measured alone, even if many values wait', () => {
  const { work } = workOf();
  const count = { times: 0 };
  const many = Array.from({ length: 1000 }, (_, n) => [`a-${n}`, countedValue(count)] as const);
  work.element('ann', values(...many));
  assert.equal(count.times, 1000);
  for (let n = 0; n < 50; n++) work.element('ann', values([`a-${n}`, n], [`b-${n}`, n]));
  assert.equal(count.times, 1050, 'the values that are replaced are looked through for files');
  work.close();
});

test('a change of a widget that joins a waiting change is measured alone, even if many traits wait', () => {
  const { work } = workOf();
  const count = { times: 0 };
  const change = (state: Readonly<Record<string, unknown>>): ElementCommand => ({
    type: 'model',
    modelId: 'm',
    message: { method: 'update', state, bufferPaths: [] },
    buffers: [],
  });
  work.element(
    'ann',
    change(Object.fromEntries(Array.from({ length: 1000 }, (_, n) => [`a${n}`, countedValue(count)]))),
  );
  assert.equal(count.times, 1000);
  for (let n = 0; n < 50; n++) work.element('ann', change({ [`a${n}`]: n, [`b${n}`]: n }));
  assert.equal(count.times, 1000);
  work.close();
});

test('a waiting value that is replaced no longer counts towards the limit', async () => {
  const { work, given, idle, free } = workOf();
  const large = (digit: string) => digit.repeat(20 * 2 ** 20);
  work.element('ann', values(['a-0', large('1')]));
  work.element('ann', values(['a-0', large('2')]));
  assert.throws(() => work.element('ann', values(['b-0', large('3')])), { code: 'quota_exceeded' });
  work.element('ann', values(['a-0', 4]));
  work.element('ann', values(['b-0', large('5')]));
  free();
  await idle;
  assert.deepEqual(given, [values(['a-0', 4], ['b-0', large('5')])]);
});

test('only the last check of a statement by one person waits, and checks by two people both wait', async () => {
  const { work, given, idle, free } = workOf();
  const check = (query: string) =>
    ({
      type: 'validate-sql',
      requestId: query,
      query,
      onlyParse: true,
      engine: null,
      dialect: 'duckdb',
    }) as const;
  for (const query of ['sel', 'select', 'select 1']) work.element('ann', check(query));
  work.element('bob', check('select 2'));
  free();
  await idle;
  assert.deepEqual(given, [check('select 1'), check('select 2')]);
});

test('at most a thousand commands may wait, and one more is refused', () => {
  const { work } = workOf();
  const call = (id: number) =>
    ({
      type: 'invoke-function',
      functionCallId: `${id}`,
      namespace: 'n',
      functionName: 'f',
      args: {},
    }) as const;
  for (let id = 0; id < 1000; id++) work.element('ann', call(id));
  assert.throws(() => work.element('ann', call(1000)), { code: 'quota_exceeded' });
  work.close();
});

test('at most 32 MiB of values may wait; further values are refused, and the waiting values are kept', async () => {
  const { work, given, idle, free } = workOf();
  const large = 'x'.repeat(31 * 2 ** 20);
  work.element('ann', values(['a-0', large]));
  assert.throws(() => work.element('ann', values(['b-0', 'x'.repeat(2 ** 20)])), { code: 'quota_exceeded' });
  free();
  await idle;
  assert.deepEqual(
    given.map((command) => command.type === 'update-ui-element' && command.objectIds),
    [['a-0']],
  );
});

test('only files of values that are replaced or interrupted before the kernel gets them are discarded', async () => {
  const { work, given, discarded, idle, free } = workOf();
  const [a, b, c, d] = ['a', 'b', 'c', 'd'].map((digit) => digit.repeat(32));
  const named = (...ids: readonly (string | undefined)[]) => ids.map((id) => ['name', `upload:${id}`]);
  work.element('ann', values(['e-0', { file: named(a, b) }]));
  work.element('ann', values(['e-0', { file: named(b, c), text: 'upload:' }]));
  assert.deepEqual(discarded, [a]);
  work.interrupt();
  assert.deepEqual(discarded.toSorted(), [a, b, c]);
  work.element('ann', values(['e-0', named(d)]));
  free();
  await idle;
  assert.equal(given.length, 1);
  assert.deepEqual(discarded.toSorted(), [a, b, c]);
});
