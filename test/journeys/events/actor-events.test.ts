import assert from 'node:assert/strict';
import test from 'node:test';
import type { ActorStreamEvent } from '#src/contract/wire/actor.ts';
import { openNotebook } from '#test/support/notebook-fixture.ts';
import { eventually } from '#test/support/processes.ts';
import { openStream } from '#test/support/raw-stream.ts';
import { refusalOf } from '#test/support/refusal.ts';
import { OWNER, startServer } from '#test/support/server-fixture.ts';

const server = await startServer(test);
const { client } = server;

const eventsIn = (text: string): ActorStreamEvent[] =>
  [...text.matchAll(/^data: (.+)$/gm)].map(([, json = '']) => JSON.parse(json) as ActorStreamEvent);

test('operators see transitions, refusals and ends of actors live', async () => {
  const stop = new AbortController();
  const seen: ActorStreamEvent[] = [];
  let started = () => {};
  const hasBegun = new Promise<void>((resolve) => {
    started = resolve;
  });
  const isOver = (async () => {
    for await (const event of client.followActors({ signal: stop.signal })) {
      seen.push(event);
      if (event.type === 'actors.replayed') started();
      if (event.type === 'actor.left' && event.data.kind === 'run') stop.abort();
    }
  })().catch(() => undefined);
  await hasBegun;
  const notebook = await openNotebook(server, { a: 'secret = "hush"\nwhile True: pass' });
  // Moves of one tenth of a second are one event, so the run waits until the session was seen without it.
  await eventually('the session is seen ready', () =>
    seen.some(
      (event) =>
        event.type === 'actor.moved' && event.data.id === notebook.id && event.data.to === 'live.ready',
    ),
  );
  const run = await notebook.submit(['a']);
  const isRunning = (event: ActorStreamEvent) =>
    event.type === 'actor.moved' && event.data.to === 'live.busy.running';
  await eventually('the session is seen running', () => seen.some(isRunning));
  assert.equal(await refusalOf(notebook.submit(['a'])), '409 session_busy');
  await client.runs.cancel(run);
  await isOver;
  const [snapshot] = seen;
  assert.equal(snapshot?.type, 'actors.snapshot');
  const moves = seen.filter((event) => event.type === 'actor.moved').map(({ data }) => data);
  const begun = moves.find(({ kind, id }) => kind === 'notebook-session' && id === notebook.id);
  assert.deepEqual([begun?.from, begun?.events[0]], [null, 'open'], 'what one turn did is one event');
  // If the kernel is ready within a tenth of a second, that is part of the same event.
  assert.match(begun?.to ?? '', /^live\.(starting\.forking|ready)$/);
  const running = moves.find(({ to }) => to === 'live.busy.running');
  assert.equal(running?.events.at(-1), 'execute');
  assert.deepEqual(running?.links.at(-1), { kind: 'run', id: run });
  const refused = seen.find((event) => event.type === 'actor.refused')?.data;
  assert.deepEqual(
    [refused?.event, refused?.code, refused?.state],
    ['execute', 'session_busy', 'live.busy.running'],
  );
  assert.match(refused?.advice ?? '', /cancel/);
  const left = seen.at(-1);
  assert.ok(left?.type === 'actor.left' && left.data.id === run && left.data.presence === 'ended');
  assert.doesNotMatch(JSON.stringify(seen), /hush/);
  await notebook.close();
});

test('a returning subscriber gets the missed events of the kind that it follows', async () => {
  const path = '/api/v3/actors/events?kind=environment';
  const first = await openStream(server, path);
  await first.until('actors.replayed');
  const { environmentId } = await client.executionEnvironments.create();
  await first.until(environmentId);
  first.close();
  await first.ended;
  const other = await openStream(server, path);
  await other.until('actors.replayed');
  await client.executionEnvironments.close(environmentId);
  await other.until('"to":"closed"'); // this event was published while the first subscriber was away
  other.close();
  const notebook = await openNotebook(server, { a: '1' });
  const second = await openStream(server, path, { 'last-event-id': first.lastEventId });
  await second.until('actors.replayed');
  const [snapshot, ...missed] = eventsIn(second.text);
  assert.deepEqual([snapshot?.type, snapshot?.resumed], ['actors.snapshot', true]);
  const closed = missed.find((event) => event.type === 'actor.moved' && event.data.id === environmentId);
  assert.ok(closed?.type === 'actor.moved' && closed.missed === true && closed.data.to === 'closed');
  const kinds = missed.flatMap(({ data }) => ('kind' in data ? [data.kind] : []));
  assert.deepEqual([...new Set(kinds)], ['environment']);
  second.close();
  await notebook.close();
});

test('a stream with moves=false has counts and refusals, and a stream of one actor must name the kind', async () => {
  const overview = await openStream(server, '/api/v3/actors/events?moves=false');
  await overview.until('actors.replayed');
  const notebook = await openNotebook(server, { a: 'while True: pass' });
  const own = await openStream(server, `/api/v3/actors/events?kind=notebook-session&id=${notebook.id}`);
  await own.until('actors.replayed');
  const run = await notebook.submit(['a']);
  assert.equal(await refusalOf(notebook.submit(['a'])), '409 session_busy');
  await overview.until('session_busy');
  await overview.until('live.busy.running');
  await overview.until('actors.counts'); // these events come at most once a second
  await client.runs.cancel(run);
  await own.until('"cancel"');
  assert.deepEqual([...new Set(eventsIn(overview.text).map(({ type }) => type))].sort(), [
    'actor.refused',
    'actors.counts',
    'actors.replayed',
    'actors.snapshot',
  ]);
  const ids = eventsIn(own.text).flatMap(({ data }) => ('id' in data ? [data.id] : []));
  assert.deepEqual([...new Set(ids)], [notebook.id]);
  overview.close();
  own.close();
  const { status, body } = await server.request('GET', `/api/v3/actors/events?id=${run}`);
  assert.deepEqual([status, Object(body).code], [400, 'invalid_request']);
  await notebook.close();
});

test('actors of another workspace are not shown and not counted', async () => {
  const stranger = await server.stranger();
  const stream = await openStream({ ...server, owner: stranger }, '/api/v3/actors/events');
  await stream.until('actors.replayed');
  await client.executionEnvironments.create();
  const own = await server.clientOf(stranger).executionEnvironments.create();
  await stream.until(own.environmentId);
  const moved = eventsIn(stream.text).filter(({ type }) => type === 'actor.moved');
  assert.equal(moved.length, 1);
  stream.close();
});

test('an owner who becomes an editor loses the stream of actors, and keeps the stream of a session', async () => {
  await client.members.create({ userId: 'olga', role: 'owner' });
  const { token } = await client.accessTokens.create({
    name: 'olga',
    userId: 'olga',
    scopes: ['workspaceRuntime:connect'],
  });
  const notebook = await openNotebook(server, { a: '1' });
  const owner = { token, workspaceId: OWNER.workspaceId };
  const actors = await openStream({ ...server, owner }, '/api/v3/actors/events');
  const session = await openStream({ ...server, owner }, `/api/v3/notebook-sessions/${notebook.id}/events`);
  await Promise.all([actors.until('actors.replayed'), session.until('session.replayed')]);
  await client.members.update('olga', { role: 'editor' });
  await actors.ended;
  await notebook.run(['a']);
  await session.until('"completed"');
  session.close();
  await notebook.close();
});
