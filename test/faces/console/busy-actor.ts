import assert from 'node:assert/strict';
import type { TestContext } from 'node:test';
import type { Stage } from './stage.ts';

const MOVES = 150;
/** How many events the actor takes with each move. */
const EVENTS = 100;

/** Serves the list of actors and their stream within the page: one actor that moves in each frame. It runs in the page. */
function moveAllTheTime(moves: number, events: number): void {
  const actor = {
    kind: 'run',
    id: 'run_busy',
    machine: 'run',
    presence: 'live',
    state: 'running',
    path: 'running.active',
    since: new Date().toISOString(),
    revision: 1,
    links: [],
    lastEvents: [],
  };
  const counts = [{ kind: 'run', state: 'running.active', count: 1 }];
  const types = Array.from({ length: events }, () => 'run.moved');
  const askServer = globalThis.fetch;
  const answer = (body: string | ReadableStream<Uint8Array>, type = 'application/json') =>
    new Response(body, { headers: { 'content-type': type } });
  const stream = () =>
    new ReadableStream<Uint8Array>({
      async start(sink) {
        const send = (type: string, data: unknown) => {
          const event = { type, time: new Date().toISOString(), data };
          sink.enqueue(new TextEncoder().encode(`id: 1\ndata: ${JSON.stringify(event)}\n\n`));
        };
        send('actors.snapshot', { counts });
        for (let i = 0; i <= moves; i++) {
          await new Promise((resolve) => setTimeout(resolve, 20)); // a pace: a move in each frame
          const to = i === moves ? 'running.last' : 'running.active';
          send('actor.moved', { ...actor, from: 'running.active', to, revision: i + 2, events: types });
        }
      },
    });
  globalThis.fetch = async (input, init) => {
    const { pathname } = new URL(String(input));
    if (pathname === '/api/v3/actors/events') return answer(stream(), 'text/event-stream');
    if (pathname !== '/api/v3/actors') return askServer(input, init);
    return answer(JSON.stringify({ items: [actor], nextCursor: null, counts }));
  };
}

export async function busyActor(t: TestContext, { server, browser }: Stage): Promise<void> {
  await t.test('the memory of the list of actors does not grow with time', async () => {
    const { page, complaints } = await browser.signIn(server, '#/ws_home/actors', {
      prepare: (opened) => opened.addInitScript(`(${moveAllTheTime})(${MOVES}, ${EVENTS})`),
    });
    await page.getByText('running.last').waitFor();
    const session = await browser.context.newCDPSession(page);
    const { result: prototype } = await session.send('Runtime.evaluate', { expression: 'Array.prototype' });
    const { objects } = await session.send('Runtime.queryObjects', {
      prototypeObjectId: prototype.objectId!,
    });
    const { result } = await session.send('Runtime.callFunctionOn', {
      objectId: objects.objectId!,
      functionDeclaration: `function () {
        const isEvent = (one) => one?.type === 'run.moved';
        return Math.max(0, ...this.filter((list) => isEvent(list[0])).map((list) => list.length));
      }`,
    });
    assert.ok(result.value <= EVENTS, `${result.value} events of one actor`);
    assert.deepEqual(complaints, []);
    await page.close();
  });
}
