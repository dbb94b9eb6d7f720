/** The streams of pages: large states, slow and stalled readers, and the memory that these take. */
import assert from 'node:assert/strict';
import { type TestContext, test } from 'node:test';
import { setImmediate as nextTurn } from 'node:timers/promises';
import { prepareMessage } from '#src/notebook/open/large-messages.ts';
import { PageHub, type PageHubPorts } from '#src/notebook/pages/page-hub.ts';
import { PageStream } from '#src/notebook/pages/page-stream.ts';
import type { EventSink, Subscription } from '#src/runtime/events/event-sink.ts';
import { StreamBudget } from '#src/runtime/events/stream-budget.ts';
import { cellOp, output } from '#test/notebook/kernel-messages.ts';
import { openUnsavedNotebook } from '#test/notebook/unsaved-notebook.ts';
import { afterTurns } from '#test/support/after-turns.ts';
import { deferred } from '#test/support/deferred.ts';
import { eventually } from '#test/support/processes.ts';

const MIB = 2 ** 20;
const LARGE = 'x'.repeat(7 * MIB);

/** A connection that takes one piece each time that the test lets it. */
class SlowSink implements EventSink {
  readonly pieces: Uint8Array[] = [];
  bytes = 0;
  isFast = false;
  isOver = false;

  write(bytes: Uint8Array): boolean {
    this.pieces.push(bytes);
    this.bytes += bytes.byteLength;
    return this.isFast;
  }

  end(): void {
    this.isOver = true;
  }

  cutOff(): void {
    this.isOver = true;
  }

  /** The messages so far: their names, and the lengths of outputs. */
  get story(): string[] {
    const frames = Buffer.concat(this.pieces).toString('utf8').replace(/^:\n/gm, '').split('\n\n');
    return frames.slice(0, -1).map((frame) => {
      const { op, data } = JSON.parse(frame.slice('data: '.length));
      return op === 'cell-op' && data.output !== null ? `${data.cell_id} ${data.output.data.length}` : op;
    });
  }
}

/** A notebook with cells that have outputs of 7 MiB each, and `others` without outputs. */
function openNotebook(t: TestContext, cellIds: readonly string[], budgetBytes = 256 * MIB, others = 0) {
  const all = [...cellIds, ...Array.from({ length: others }, (_, n) => `other${n}`)];
  const { live } = openUnsavedNotebook(Object.fromEntries(all.map((id) => [id, '1'])), {});
  live.apply(cellIds.map((id) => cellOp(id, { output: output('text/html', LARGE) })));
  const budget = new StreamBudget(budgetBytes);
  const cutOffs: string[] = [];
  const ports = {
    budget,
    interrupt: () => {},
    isClosed: () => true,
    onCutOff: (reason: string) => cutOffs.push(reason),
  };
  const hub = new PageHub(live, ports as unknown as PageHubPorts, () => {});
  const subscriptions: Subscription[] = [];
  const attach = (sink: EventSink) => {
    const caller = { pageId: `page-${subscriptions.length}`, userId: 'ada' };
    const subscription = hub.attach(caller, 'view', 'edit', sink);
    subscriptions.push(subscription);
    return subscription;
  };
  t.after(() => {
    for (const subscription of subscriptions) subscription.close();
  });
  return { live, hub, budget, cutOffs, attach };
}

test('a state of 35 MiB arrives at a page that takes one piece at a time, and later events follow the state', async (t) => {
  const cells = ['a', 'b', 'c', 'd', 'e'];
  const { live, cutOffs, attach } = openNotebook(t, cells);
  const sink = new SlowSink();
  const subscription = attach(sink);
  let mostQueued = 0;
  for (let taken = 0; taken < sink.pieces.length; taken = sink.pieces.length - 1) {
    const before = sink.pieces.length;
    if (before === 20) live.apply([cellOp('a', { output: output('text/html', 'changed') })]);
    subscription.writable();
    if (sink.pieces.length === before) break;
    mostQueued = Math.max(mostQueued, sink.pieces.at(-1)!.byteLength);
  }
  assert.deepEqual(cutOffs, []);
  assert.ok(mostQueued <= 64 * 1024);
  const state = cells.map((id) => `${id} ${LARGE.length}`);
  assert.deepEqual(sink.story, ['kernel-ready', 'variables', ...state, 'a 7']);
});

test('five hundred pages that read nothing hold one piece each, and their encoded state is kept once', async (t) => {
  const { hub, budget, cutOffs, attach } = openNotebook(t, ['a', 'b', 'c']);
  const sinks = Array.from({ length: 500 }, () => new SlowSink());
  const subscriptions = sinks.map(attach);
  for (let piece = 0; piece < 3; piece++) for (const subscription of subscriptions) subscription.writable();
  await nextTurn();
  const bytes = sinks.reduce((sum, sink) => sum + sink.pieces.at(-1)!.byteLength, 0);
  const inMemory = bytes + hub.keptBytes;
  assert.ok(budget.chargedBytes >= inMemory, `${budget.chargedBytes} bytes are charged for ${inMemory}`);
  assert.ok(budget.chargedBytes < 500 * 65 * 1024 + 22 * MIB, `${budget.chargedBytes} bytes`);
  assert.ok(hub.keptBytes > 0 && hub.keptBytes < 22 * MIB, `${hub.keptBytes} bytes`);
  const [first, ...others] = sinks;
  assert.ok(
    others.every(({ pieces }) => pieces.at(-1) === first!.pieces.at(-1)),
    'all pages were sent the same bytes in memory',
  );
  assert.deepEqual(cutOffs, []);
  for (const subscription of subscriptions) subscription.close();
  await nextTurn();
  assert.deepEqual([hub.keptBytes, budget.chargedBytes], [0, 0]);
});

test('pages that read nothing are cut off when all streams together take too much memory', async (t) => {
  const { budget, cutOffs, attach } = openNotebook(t, ['a'], 2 * MIB);
  const sinks = Array.from({ length: 100 }, () => new SlowSink());
  for (const subscription of sinks.map(attach)) {
    for (let piece = 0; piece < 3; piece++) subscription.writable();
    assert.ok(budget.chargedBytes <= 2 * MIB, `${budget.chargedBytes} bytes`);
  }
  await nextTurn();
  const cut = sinks.filter(({ isOver }) => isOver).length;
  assert.ok(cut > 0 && cut < 100, `${cut} were cut off`);
  assert.equal(cutOffs.length, cut);
});

test('the part of a state that a page has not taken is charged until its last frame is taken', async (t) => {
  const { budget, attach } = openNotebook(t, [], 256 * MIB, 1000);
  const sink = new SlowSink();
  const subscription = attach(sink);
  const heldBytes = 500 * 1000; // what a page of so many cells takes at least, as the heap shows
  assert.ok(budget.chargedBytes >= heldBytes, `${budget.chargedBytes} bytes`);
  sink.isFast = true;
  for (let before = -1; before < sink.bytes; ) {
    before = sink.bytes;
    subscription.writable();
    for (let turn = 0; turn < 10; turn++) await nextTurn();
  }
  assert.equal(budget.chargedBytes, 0);
});

test('the server writes at most 4 MiB and one piece each in a turn to fifty fast pages that open at once, and all get the whole state', async (t) => {
  const { attach } = openNotebook(t, ['a']);
  const sinks = Array.from({ length: 50 }, () => Object.assign(new SlowSink(), { isFast: true }));
  const written = () => sinks.reduce((sum, { bytes }) => sum + bytes, 0);
  for (const sink of sinks) attach(sink);
  const inFirstTurn = written();
  assert.ok(inFirstTurn < 9 * MIB, `${inFirstTurn} bytes in one turn`);
  assert.ok(sinks.every(({ bytes }) => bytes > 0));
  await afterTurns('every page has the state', () => written() >= 50 * LARGE.length);
  for (let turn = 0; turn < 5; turn++) await nextTurn();
  assert.deepEqual(new Set(sinks.map(({ story }) => story.at(-1))), new Set([`a ${LARGE.length}`]));
});

test('a refused value of a UI element is not shown to pages that open later', (t) => {
  const { live, hub } = openNotebook(t, []);
  const command = {
    type: 'update-ui-element',
    objectIds: ['a-0', 'a-1'],
    values: ['x'.repeat(33 * MIB), 1],
  } as const;
  assert.throws(() => hub.element({ pageId: 'page', userId: 'ada' }, command), /Too many requests of pages/);
  assert.deepEqual(live.uiValues.all(), {});
});

test('a large message that was prepared in slices is not encoded again for pages', async (t) => {
  const { live, attach } = openNotebook(t, ['a']);
  const sink = new SlowSink();
  sink.isFast = true;
  attach(sink);
  await afterTurns('the page has the state', () => sink.bytes >= LARGE.length);
  const text = '<td class="x">1</td>'.repeat(100_000);
  const message = cellOp('a', { output: output('text/html', text) });
  const work = prepareMessage(message, live.follower !== undefined);
  let step = work.next();
  while (step.done !== true) step = work.next();
  using _prepared = step.value;
  let longest = 0;
  const stringify = JSON.stringify;
  t.mock.method(JSON, 'stringify', (value: unknown) => {
    const json = stringify(value);
    longest = Math.max(longest, json?.length ?? 0);
    return json;
  });
  live.apply([message]);
  t.mock.restoreAll();
  await afterTurns('the page has the message', () => sink.story.includes(`a ${text.length}`));
  assert.ok(longest < 64 * 1024, `${longest} characters were encoded at once`);
});

test('a page that lags too far behind the changes is cut off', async (t) => {
  const { live, cutOffs, attach } = openNotebook(t, ['a']);
  const sink = new SlowSink();
  attach(sink);
  for (let count = 0; count < 12 && !sink.isOver; count++)
    live.apply([cellOp('a', { output: output('text/html', LARGE) })]);
  await afterTurns('the page is cut off', () => sink.isOver); // the frames are made in slices
  assert.deepEqual(cutOffs, ['slow_subscriber']);
});

test('sixty frames that are still being made arrive in their order, and a page with a hundred such frames is cut off', async () => {
  const frame = (n: number) => Buffer.from(`data: ${JSON.stringify({ op: `frame ${n}`, data: {} })}\n\n`);
  for (const count of [60, 100]) {
    const cutOffs: string[] = [];
    const sink = Object.assign(new SlowSink(), { isFast: true });
    const stream = new PageStream(sink, { onCutOff: (reason) => void cutOffs.push(reason) }, () => {});
    stream.begin([]);
    const frames = Array.from({ length: count }, () => deferred<Uint8Array>());
    for (const { promise } of frames) stream.send(promise);
    for (const [n, { resolve }] of frames.entries()) {
      resolve(frame(n));
      await nextTurn();
    }
    const all = frames.map((_, n) => `frame ${n}`);
    assert.deepEqual([sink.story, cutOffs], count === 60 ? [all, []] : [[], ['slow_subscriber']]);
    stream.close();
  }
});

test('a large state is sent in slices to a fast page', async (t) => {
  const { attach } = openNotebook(t, ['a', 'b', 'c']);
  const sink = new SlowSink();
  sink.isFast = true;
  attach(sink);
  assert.ok(sink.bytes > 0 && sink.bytes < 1.5 * MIB, `${sink.bytes} bytes in the first turn`);
  await afterTurns('the page has the state', () => sink.bytes >= 3 * LARGE.length);
  for (let turn = 0; turn < 5; turn++) await nextTurn();
  assert.deepEqual(
    sink.story.slice(2),
    ['a', 'b', 'c'].map((id) => `${id} ${LARGE.length}`),
  );
});

test('a layout that is too long is refused before its JSON is made', (t) => {
  const { live, hub } = openNotebook(t, []);
  const caller = { pageId: 'page', userId: 'ada' };
  let times = 0;
  const layoutWith = (cells: unknown) => ({
    type: 'grid',
    data: {
      cells,
      toJSON() {
        times++;
        return { cells };
      },
    },
  });
  const tooLong = {
    'one text': 'x'.repeat(15 * MIB),
    'many numbers': Array.from({ length: 250_000 }, () => 1),
  };
  for (const cells of Object.values(tooLong))
    assert.throws(() => hub.saveLayout(caller, layoutWith(cells)), /64 KiB/);
  assert.equal(times, 0);
  // A list of numbers is the JSON that is shortest for what it is counted as.
  hub.saveLayout(caller, layoutWith(Array.from({ length: 24_000 }, () => 1)));
  assert.match(String(live.document.serialization.app.options.layout_file), /^data:/);
  assert.ok(times > 0);
});

test('ten thousand cells that wait for their run are shown to a page in a few large pieces', async (t) => {
  const { hub, attach } = openNotebook(t, []);
  const sink = Object.assign(new SlowSink(), { isFast: true });
  const subscription = attach(sink);
  const cells = Array.from({ length: 10_000 }, (_, n) => ({ cellId: `cell-${n}`, code: '1' }));
  const shown = (count: number) =>
    afterTurns(`${count} messages are shown`, () => {
      subscription.writable();
      return sink.story.length >= 2 + count;
    });
  hub.run({ pageId: 'page', userId: 'ada' }, cells);
  await shown(cells.length);
  assert.ok(sink.pieces.length < 100, `${sink.pieces.length} pieces`);
  hub.interrupt(); // they do not wait any more
  await shown(2 * cells.length);
  assert.ok(sink.pieces.length < 200, `${sink.pieces.length} pieces`);
  assert.deepEqual([...new Set(sink.story)], ['kernel-ready', 'variables', 'cell-op']);
});

test('a cell that was requested to run but is never in the notebook does not stay shown as waiting', async (t) => {
  const { hub, attach } = openNotebook(t, []);
  const sink = Object.assign(new SlowSink(), { isFast: true });
  attach(sink);
  hub.run({ pageId: 'page', userId: 'ada' }, [{ cellId: 'never', code: '1' }]);
  const statuses = () =>
    Array.from(
      Buffer.concat(sink.pieces)
        .toString()
        .matchAll(/"never".*?"status":"(\w+)"/g),
      ([, one]) => one,
    );
  await eventually('it waits no more', () => statuses().includes('idle'));
  assert.deepEqual(statuses(), ['queued', 'idle']);
});

test('a large change reaches all pages in slices, encoded once, and later events follow the change', async (t) => {
  const { live, attach } = openNotebook(t, [], 256 * MIB, 1);
  const sinks = [0, 1].map(() => Object.assign(new SlowSink(), { isFast: true }));
  for (const sink of sinks) attach(sink);
  const known = sinks[0]!.bytes;
  let [characters, longest] = [0, 0];
  const stringify = JSON.stringify;
  t.mock.method(JSON, 'stringify', (value: unknown) => {
    const json = stringify(value);
    characters += json?.length ?? 0;
    longest = Math.max(longest, json?.length ?? 0);
    return json;
  });
  live.follower?.changed([{ type: 'set-code', cellId: 'other0', code: LARGE }], null, null);
  live.apply([cellOp('other0', { output: output('text/html', 'later') })]);
  assert.equal(sinks[0]!.bytes, known, 'nothing of it is sent in this turn');
  await afterTurns('both pages have the message', () =>
    sinks.every(({ story }) => story.includes('other0 5')),
  );
  t.mock.restoreAll();
  assert.ok(longest < 64 * 1024, `${longest} characters were encoded at once`);
  assert.ok(characters < 1.5 * LARGE.length, `${characters} characters were encoded`);
  for (const { story } of sinks)
    assert.deepEqual(story.slice(-2), ['notebook-document-transaction', 'other0 5']);
});

test('the last message of a page arrives although an earlier large message is still being made', async (t) => {
  const { live, hub, attach } = openNotebook(t, [], 256 * MIB, 1);
  const sink = Object.assign(new SlowSink(), { isFast: true });
  attach(sink);
  live.follower?.changed([{ type: 'set-code', cellId: 'other0', code: LARGE }], null, null);
  hub.left();
  assert.match(Buffer.concat(sink.pieces).toString(), /event: close\n/);
});
