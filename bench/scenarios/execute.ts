import { MARK } from '../api.ts';
import { repeatRuns } from '../counting/repeated-runs.ts';
import type { UnitOfWork } from '../counting/unit.ts';
import { spread } from '../measure.ts';
import type { Scenario } from '../scenario.ts';
import { expected } from '../wire.ts';

/** Runs a cell again and again; one subscriber follows the runs. */
const unit: UnitOfWork = {
  name: 'run',
  count: 400,
  async prepare({ api }) {
    const { id } = await api.session(['1 + 1']);
    const feed = await api.follow(id);
    const wire = await api.wire();
    const request = api.executeBytes(id, 'c0');
    return {
      feed,
      perform: (count) => repeatRuns(feed, wire, request, count),
    };
  },
};

/** How fast one cell runs. */
export const execute: Scenario = {
  name: 'execute',
  title: 'One execution of a cell `1 + 1`: from the POST until the terminal status is on the event stream',
  limitS: 60,
  unit,
  async run(stage) {
    const { api } = await stage.server();
    const { id } = await api.session(['1 + 1']);
    const feed = await api.follow(id);
    const wire = await api.wire();
    const request = api.executeBytes(id, 'c0');
    const acceptedMs: number[] = [];
    const terminalMs: number[] = [];
    const rounds = stage.count(2_000, 200);
    for (let i = -200; i < rounds; i++) {
      const completed = feed.until(MARK.completed);
      const startedAt = performance.now();
      const [accepted, completedAt] = await Promise.all([wire.send(request), completed]);
      expected(accepted, 202);
      if (i < 0) continue;
      acceptedMs.push(accepted.at - startedAt);
      terminalMs.push(completedAt - startedAt);
    }
    feed.close();
    wire.close();
    return [
      spread('202', acceptedMs, { p50: 1 }),
      spread('terminal status', terminalMs, { p50: 2.5, p99: 6 }),
    ];
  },
};
