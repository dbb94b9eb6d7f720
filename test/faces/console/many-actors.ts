import assert from 'node:assert/strict';
import type { TestContext } from 'node:test';
import type { Actor, ActorPage } from '#src/contract/wire/actor.ts';
import type { Stage } from './stage.ts';

const ACTORS = 10_000;
/** More than a screen of rows, including the rows kept above and below it. */
const MAX_ROWS = 60;
const MAX_FRAME_MS = 50;
/** A step draws at least twice: when it scrolls to the last rows, and when the next rows have been loaded. */
const FRAMES_A_STEP = 2;
const WARM_UP_FRAMES = 5;
/** The work of the page itself, by Chromium's names of its metrics. */
const WORK = ['ScriptDuration', 'LayoutDuration', 'RecalcStyleDuration'];

/**
 * Makes up actors, and serves lists of them within the page: a server keeps only 1,000 idle actors in memory, and 10,000 working
 * ones would need as many kernels. It runs in the page.
 */
function answerFromMemory(howMany: number): void {
  const since = Date.now();
  const all: readonly Actor[] = Array.from({ length: howMany }, (_, i) => ({
    kind: i % 4 === 0 ? 'run' : 'environment',
    id: `actor_${String(i).padStart(20, '0')}`,
    machine: i % 4 === 0 ? 'run' : 'environment',
    presence: 'live',
    state: 'open',
    path: i % 4 === 0 ? 'running.active' : 'open.vacant',
    since: new Date(since - i * 1000).toISOString(),
    revision: 1,
    links: [{ kind: 'notebook-session', id: `nb_${i}` }],
    lastEvents: Array.from({ length: 16 }, () => ({ type: 'some.event', at: new Date(since).toISOString() })),
  }));
  const pageOf = (query: URLSearchParams): ActorPage => {
    const wanted = all.filter(({ id }) => id.includes(query.get('q') ?? ''));
    const start = Number(query.get('after') ?? 0);
    const end = start + Number(query.get('limit'));
    const count = (kind: string) => wanted.filter((one) => one.kind === kind).length;
    return {
      items: wanted.slice(start, end),
      nextCursor: end < wanted.length ? String(end) : null,
      counts: [
        { kind: 'environment', state: 'open.vacant', count: count('environment') },
        { kind: 'run', state: 'running.active', count: count('run') },
      ],
    };
  };
  const askServer = globalThis.fetch;
  globalThis.fetch = async (input, init) => {
    const url = new URL(String(input));
    if (url.pathname !== '/api/v3/actors') return askServer(input, init);
    return new Response(JSON.stringify(pageOf(url.searchParams)), {
      headers: { 'content-type': 'application/json' },
    });
  };
}

export async function manyActors(t: TestContext, { server, browser }: Stage): Promise<void> {
  const { page, complaints } = await browser.signIn(server, '#/ws_home/actors', {
    prepare: (opened) => opened.addInitScript(`(${answerFromMemory})(${JSON.stringify(ACTORS)})`),
  });
  const rows = page.locator('.rows tbody tr:not(.space)');
  await rows.first().waitFor();

  await t.test('all actors are counted, and only actors in view are in the page', async () => {
    await page.getByRole('heading', { name: 'Actors' }).locator('..').getByText('10,000').waitFor();
    assert.equal(await page.getByRole('table').getAttribute('aria-rowcount'), String(ACTORS));
    assert.ok((await rows.count()) <= MAX_ROWS);
  });

  await t.test(
    'no frame takes more than 50 ms of work while the list is scrolled to its last actor',
    async () => {
      const session = await browser.context.newCDPSession(page);
      // The processor time of the page's thread, not the elapsed time: other programs do not affect it.
      await session.send('Performance.enable', { timeDomain: 'threadTicks' });
      const workedMs = async () => {
        const { metrics } = await session.send('Performance.getMetrics');
        const parts = metrics.filter(({ name }) => WORK.includes(name));
        return parts.reduce((sum, { value }) => sum + value * 1000, 0);
      };
      let longest = 0;
      for (let before = await workedMs(), isAtEnd = false, frame = 0; !isAtEnd; frame++) {
        isAtEnd = await page.evaluate<boolean>(`(async () => {
        const box = document.querySelector('.rows');
        box.scrollTop = box.scrollHeight;
        await new Promise((done) => requestAnimationFrame(done));
        return document.querySelector('tr[aria-rowindex="${ACTORS}"]') !== null;
      })()`);
        const after = await workedMs();
        // In the first frames the browser still compiles the code.
        if (frame >= WARM_UP_FRAMES) longest = Math.max(longest, after - before);
        before = after;
      }
      assert.ok((await rows.count()) <= MAX_ROWS);
      const frameMs = longest / FRAMES_A_STEP;
      assert.ok(frameMs < MAX_FRAME_MS, `${frameMs.toFixed(1)} ms`);
      t.diagnostic(`a frame took ${frameMs.toFixed(1)} ms of work at most`);
    },
  );

  await t.test('an actor is found by a part of its id', async () => {
    const id = 'actor_00000000000000007654';
    await page.getByLabel('A part of an id', { exact: true }).fill(id.slice(-10));
    await page.getByRole('link', { name: id }).waitFor();
    await page.waitForFunction("document.querySelectorAll('.rows tbody tr:not(.space)').length === 1");
  });

  await t.test('the keyboard moves through the rows and opens a row', async () => {
    await page.getByLabel('A part of an id', { exact: true }).fill('');
    await rows.nth(5).waitFor();
    await page.getByLabel('A part of an id', { exact: true }).blur();
    await page.keyboard.press('j');
    await page.keyboard.press('j');
    const second = await rows.nth(1).getByRole('link').first().getAttribute('aria-label');
    await page.keyboard.press('Enter');
    await page.getByRole('heading', { level: 1, name: second ?? 'none' }).waitFor();
  });

  assert.deepEqual(complaints, []);
}
