import { MARK } from '../api.ts';
import { spread } from '../measure.ts';
import type { Scenario } from '../scenario.ts';
import { decoded, expected } from '../wire.ts';

const LOOP = 'print("it has begun")\nwhile True:\n    pass';

/** How fast a cancel ends a run. */
export const cancel: Scenario = {
  name: 'cancel',
  title: 'Cancelling an endless Python loop: from the POST until the terminal status is on the event stream',
  limitS: 60,
  async run(stage) {
    const { api } = await stage.server();
    const { id } = await api.session([LOOP]);
    const feed = await api.follow(id);
    const wire = await api.wire();
    const request = api.executeBytes(id, 'c0');
    const tookMs: number[] = [];
    const rounds = stage.count(100);
    for (let i = -10; i < rounds; i++) {
      const begun = feed.until('it has begun');
      const submitted = expected(await wire.send(request), 202);
      const { runId } = decoded<{ runId: string }>(submitted);
      await begun;
      const cancelBytes = api.bytes('POST', `/api/v3/runs/${runId}/cancel`, {});
      const [cancelled, ready] = [feed.until(MARK.cancelled), feed.until(MARK.ready)];
      const startedAt = performance.now();
      const [answer, cancelledAt] = await Promise.all([wire.send(cancelBytes), cancelled]);
      expected(answer, 202);
      if (i >= 0) tookMs.push(cancelledAt - startedAt);
      await ready;
    }
    feed.close();
    wire.close();
    return [spread('terminal status', tookMs, { p50: 5, p99: 10 })];
  },
};
