/** A subscriber that returns with the id of its last event, and the events that it gets. */
import assert from 'node:assert/strict';
import { RecordingSink, snapshot, text } from './recording-sink.ts';
import { commit, delivered, rule, subscribe } from './stream-rules.ts';

/** The frames of a subscriber as words: missed events have a `?`, a resumed snapshot a `+`. */
const marked = (sink: RecordingSink) =>
  sink.frames.map(({ event: { resumed, ...event } }, i) => {
    const isMissed = 'missed' in event && event.missed === true;
    return `${sink.story[i]}${isMissed ? '?' : ''}${resumed === true ? '+' : ''}`;
  });

rule(
  'a subscriber that comes back gets the snapshot, exactly the missed events, the state, and live events',
  async (open) => {
    const stream = open();
    const { sink, subscription } = subscribe(stream);
    for (const words of ['1', '2', '3', '4']) stream.publish(text(words));
    await delivered();
    stream.publish(text('5'));
    await delivered();
    subscription.close();
    const state = [snapshot, text('state')];
    const stories = sink.frames.slice(1).map(({ id }) => subscribe(stream, id, state).sink);
    stream.publish(text('6'));
    await delivered();
    const missed = ['1?', '2?', '3?', '4?', '5?'];
    assert.deepEqual(
      stories.map(marked),
      [0, 1, 2, 3, 4, 5].map((count) => [
        'session.snapshot+',
        ...missed.slice(count),
        'state',
        'session.replayed',
        '6',
      ]),
    );
  },
);

rule('a subscriber that is cut off while it catches up continues there, wherever it was', async (open) => {
  const stream = open();
  const first = subscribe(stream);
  for (const words of ['1', '2', '3']) stream.publish(text(words));
  await delivered();
  const { id } = first.sink.frames[2]!;
  const { frames } = subscribe(stream, id, [snapshot, text('a'), text('b')]).sink;
  const ids = frames.map((frame) => frame.id);
  assert.equal(new Set(ids).size, ids.length);
  const missedAfter = (lastEventId: string) =>
    marked(subscribe(stream, lastEventId).sink).filter((word) => word.endsWith('?'));
  assert.deepEqual(ids.map(missedAfter), [['2?', '3?'], ['3?'], [], [], [], []]);
  assert.ok(ids.every((one) => marked(subscribe(stream, one).sink)[0] === 'session.snapshot+'));
});

rule('events that are held for their commit when a subscriber comes back count as missed', async (open) => {
  const stream = open();
  const { id } = subscribe(stream).sink.frames[1]!;
  const held = commit();
  stream.publish(text('held'), held.promise);
  const { sink } = subscribe(stream, id);
  stream.publish(text('after'));
  held.settle();
  await delivered();
  assert.deepEqual(marked(sink), ['session.snapshot+', 'held?', 'session.replayed', 'after']);
});

rule('an id that is not known here asks for the state again', async (open) => {
  const earlier = open();
  const stream = open();
  const known = subscribe(stream).sink.frames;
  const foreign = subscribe(earlier).sink.frames;
  const { id } = known[1]!;
  const ids = [foreign[1]!.id, known[0]!.id, `${id}9`, 'x', '-', `${id}-1`, `${id}.0`, `${id}.1.1`, ` ${id}`];
  assert.deepEqual(
    ids.map((one) => marked(subscribe(stream, one).sink)),
    ids.map(() => ['session.snapshot', 'session.replayed']),
  );
});

rule('an id that has left the ring asks for the state again', async (open) => {
  const stream = open(1024);
  const { id } = subscribe(stream).sink.frames[1]!;
  for (let i = 0; i < 10; i++) {
    stream.publish(text('x'.repeat(200)));
    await delivered();
  }
  assert.deepEqual(subscribe(stream, id).sink.story, ['session.snapshot', 'session.replayed']);
});

rule('the id of a resync asks for the state again', async (open) => {
  const stream = open();
  const { sink } = subscribe(stream);
  stream.publish(text('1'));
  await delivered();
  stream.resync('server_stopping');
  const last = sink.frames.at(-1)!;
  assert.deepEqual([sink.story.at(-1), sink.ended], ['session.resync-required server_stopping', true]);
  assert.deepEqual(subscribe(stream, last.id).sink.story, ['session.snapshot', 'session.replayed']);
});

rule(
  'events that are published while the state is made are in the state, and are not sent again',
  async (open) => {
    const stream = open();
    subscribe(stream); // so that frames are delivered as they are with followers
    const sink = new RecordingSink();
    const replay = () => {
      stream.publish(text('waited'));
      return [snapshot, text('waited')];
    };
    stream.subscribe(sink, { replay });
    await delivered();
    assert.deepEqual(marked(sink), ['session.snapshot', 'waited', 'session.replayed']);
    const { id } = sink.frames.at(-1)!;
    assert.equal(id, stream.lastEventId);
    assert.deepEqual(marked(subscribe(stream, id).sink), ['session.snapshot+', 'session.replayed']);
  },
);
