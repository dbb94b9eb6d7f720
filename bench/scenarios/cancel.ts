import { type Api, MARK } from '../api.ts';
import type { UnitOfWork } from '../counting/unit.ts';
import type { Feed } from '../feed.ts';
import { spread } from '../measure.ts';
import type { Scenario } from '../scenario.ts';
import { decoded, expected, type Wire } from '../wire.ts';

/** A cell that prints its beginning and never ends. */
export const LOOP = 'print("it has begun")\nwhile True:\n    pass';

const unit: UnitOfWork = {
  name: 'run and cancel',
  count: 60,
  async prepare({ api }) {
    const { id } = await api.session([LOOP]);
    const feed = await api.follow(id);
    const wire = await api.wire();
    const tookMs: number[] = [];
    return {
      feed,
      async perform(count) {
        for (let i = 0; i < count; i++) tookMs.push(await cancelOnce(api, id, feed, wire));
      },
    };
  },
};

/** How fast a cancel ends a run. */
export const cancel: Scenario = {
  name: 'cancel',
  title: 'Cancelling an endless Python loop: from the POST until the terminal status is on the event stream',
  limitS: 60,
  unit,
  async run(stage) {
    const { api } = await stage.server();
    const { id } = await api.session([LOOP]);
    const feed = await api.follow(id);
    const wire = await api.wire();
    const tookMs: number[] = [];
    const rounds = stage.count(100);
    for (let i = -10; i < rounds; i++) {
      const ms = await cancelOnce(api, id, feed, wire);
      if (i >= 0) tookMs.push(ms);
    }
    feed.close();
    wire.close();
    return [spread('terminal status', tookMs, { p50: 5, p99: 10 })];
  },
};

/** Runs the cell `c0` of a session, and cancels it once it has begun. Returns how long the cancel took, in milliseconds. */
export async function cancelOnce(api: Api, sessionId: string, feed: Feed, wire: Wire): Promise<number> {
  const begun = feed.until('it has begun');
  const submitted = expected(await wire.send(api.executeBytes(sessionId, 'c0')), 202);
  const { runId } = decoded<{ runId: string }>(submitted);
  await begun;
  const cancelBytes = api.bytes('POST', `/api/v3/runs/${runId}/cancel`, {});
  const [cancelled, ready] = [feed.until(MARK.cancelled), feed.until(MARK.ready)];
  const startedAt = performance.now();
  const [answer, cancelledAt] = await Promise.all([wire.send(cancelBytes), cancelled]);
  expected(answer, 202);
  await ready;
  return cancelledAt - startedAt;
}
