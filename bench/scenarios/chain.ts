import { MARK } from '../api.ts';
import { repeatRuns } from '../counting/repeated-runs.ts';
import type { UnitOfWork } from '../counting/unit.ts';
import { spread } from '../measure.ts';
import type { Scenario } from '../scenario.ts';
import { expected } from '../wire.ts';

const CELLS = 100;

const CODES = Array.from({ length: CELLS }, (_, i) => (i === 0 ? 'v0 = 1' : `v${i} = v${i - 1} + 1`));

const unit: UnitOfWork = {
  name: 'chain',
  count: 30,
  async prepare({ api }) {
    const { id } = await api.session(CODES);
    const feed = await api.follow(id);
    const wire = await api.wire();
    return {
      feed,
      perform: (count) => repeatRuns(feed, wire, api.executeBytes(id), count),
    };
  },
};

/** How long a chain of dependent cells takes. */
export const chain: Scenario = {
  name: 'chain',
  title: `A chain of ${CELLS} cells, each using the one before: from the POST that runs all until the terminal status`,
  limitS: 60,
  unit,
  async run(stage) {
    const { api } = await stage.server();
    const { id } = await api.session(CODES);
    const feed = await api.follow(id);
    const wire = await api.wire();
    const request = api.executeBytes(id);
    const tookMs: number[] = [];
    const rounds = stage.count(100);
    for (let i = -5; i < rounds; i++) {
      const completed = feed.until(MARK.completed);
      const startedAt = performance.now();
      expected(await wire.send(request), 202);
      const completedAt = await completed;
      if (i >= 0) tookMs.push(completedAt - startedAt);
    }
    feed.close();
    wire.close();
    return [spread('terminal status', tookMs, { p50: 65 })];
  },
};
