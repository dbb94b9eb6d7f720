import { MARK } from '../api.ts';
import type { UnitOfWork } from '../counting/unit.ts';
import { Feed } from '../feed.ts';
import { spread } from '../measure.ts';
import type { Scenario } from '../scenario.ts';
import { expected } from '../wire.ts';

const unit: UnitOfWork = {
  name: 'session',
  count: 30,
  quickCount: 5,
  async prepare({ api }) {
    return {
      async perform(count) {
        for (let i = 0; i < count; i++) await api.close((await api.session(['x = 1\nx + 1'])).id);
      },
    };
  },
};

/** How fast a session opens. */
export const sessionOpen: Scenario = {
  name: 'session-open',
  title: 'From the POST that opens a session until its stream says ready, and until the first result',
  limitS: 60,
  unit,
  async run(stage) {
    const { api } = await stage.server();
    const wire = await api.wire();
    const acceptedMs: number[] = [];
    const readyMs: number[] = [];
    const resultMs: number[] = [];
    const rounds = stage.count(60);
    for (let i = -5; i < rounds; i++) {
      const id = await api.notebook(['x = 1\nx + 1']);
      const open = api.openBytes(id, await api.environment());
      const execute = api.executeBytes(id);
      const startedAt = performance.now();
      const accepted = expected(await wire.send(open), 202);
      const { feed, seen } = await Feed.open(api.endpoint, id, MARK.ready);
      const readyAt = await seen[0]!;
      const completed = feed.until(MARK.completed);
      expected(await wire.send(execute), 202);
      const completedAt = await completed;
      feed.close();
      await api.close(id);
      if (i < 0) continue;
      acceptedMs.push(accepted.at - startedAt);
      readyMs.push(readyAt - startedAt);
      resultMs.push(completedAt - startedAt);
    }
    return [
      spread('202', acceptedMs),
      spread('ready', readyMs, { p50: 35, p99: 90 }),
      spread('first result', resultMs, { p50: 45, p99: 90 }),
    ];
  },
};
