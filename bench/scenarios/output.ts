import { MARK } from '../api.ts';
import { repeatRuns } from '../counting/repeated-runs.ts';
import type { UnitOfWork } from '../counting/unit.ts';
import { atLeast, atMost, spread } from '../measure.ts';
import { residentBytes } from '../processes.ts';
import type { Scenario } from '../scenario.ts';
import { expected } from '../wire.ts';

const MIB = 1024 * 1024;
const LINE_BYTES = 1024;
const LINES = (10 * MIB) / LINE_BYTES;
const PRINT = `for i in range(${LINES}):\n    print("x" * ${LINE_BYTES - 1})`;

const unit: UnitOfWork = {
  name: '10 MiB',
  count: 5,
  quickCount: 2,
  async prepare({ api }) {
    const { id } = await api.session([PRINT]);
    const feed = await api.follow(id);
    const wire = await api.wire();
    return {
      feed,
      perform: (count) => repeatRuns(feed, wire, api.executeBytes(id, 'c0'), count),
    };
  },
};

/** How fast printed output reaches a subscriber. */
export const output: Scenario = {
  name: 'output',
  title:
    '10 MiB printed by one cell in lines of 1 KiB, one subscriber: from the POST until all of it and the end have arrived',
  limitS: 60,
  unit,
  async run(stage) {
    const { api, pid } = await stage.server();
    const tookMs: number[] = [];
    const growthMiB: number[] = [];
    let printed = 0;
    let arrived = 0;
    const rounds = stage.count(10, 3);
    for (let i = -1; i < rounds; i++) {
      const { id } = await api.session([PRINT]);
      const feed = await api.follow(id);
      const wire = await api.wire();
      feed.keep();
      const memoryBefore = residentBytes(pid);
      const completed = feed.until(MARK.completed);
      const startedAt = performance.now();
      expected(await wire.send(api.executeBytes(id, 'c0')), 202);
      const completedAt = await completed;
      if (i >= 0) {
        tookMs.push(completedAt - startedAt);
        growthMiB.push((residentBytes(pid) - memoryBefore) / MIB);
        printed += LINES * LINE_BYTES;
        for (const { type, data } of feed.events()) {
          if (type === 'console-output') arrived += String(data.text).length;
        }
      }
      feed.close();
      wire.close();
      await api.close(id);
    }
    return [
      spread('all of it', tookMs, { p50: 300 }),
      atLeast('delivered', (arrived / printed) * 100, '%', 100),
      atMost('growth of the server, worst', Math.max(...growthMiB), 'MiB', 30),
    ];
  },
};
