import { MARK } from '../api.ts';
import { Readers, TIME_MARK } from '../load/readers.ts';
import { atLeast, atMost, spread, spreadOf } from '../measure.ts';
import { residentBytes } from '../processes.ts';
import type { Scenario } from '../scenario.ts';
import type { LaunchedServer } from '../server.ts';
import { expected } from '../wire.ts';

const READERS = 100;
/** With `PRINTS_A_SECOND`, 0.65 MB per second. */
const LINE_BYTES = 6_500;
const PRINTS_A_SECOND = 100;
const MIB = 1024 * 1024;

/** Measures whether readers that have stopped reading disturb the others. */
export const stalledReaders: Scenario = {
  name: 'stalled-readers',
  title: `${READERS} readers of 0.65 MB per second, alone and together with ${READERS} stalled readers`,
  limitS: 120,
  async run(stage) {
    const seconds = stage.quick ? 12 : 20;
    const undisturbed = await follow(await stage.server(), stage.quick ? 3 : 8, 0);
    const disturbed = await follow(await stage.server(), seconds, READERS);
    const ratio = spreadOf(disturbed.delaysMs).p99 / spreadOf(undisturbed.delaysMs).p99;
    return [
      spread('alone', undisturbed.delaysMs),
      spread('with stalled ones', disturbed.delaysMs),
      atMost('p99 with stalled ones compared to p99 alone', ratio, '×', 1.5),
      atLeast('stalled ones cut off', (disturbed.cutOff / READERS) * 100, '%', 100),
      atMost('growth of the server', disturbed.growthMiB, 'MiB', 40),
    ];
  },
};

async function follow({ api, pid }: LaunchedServer, seconds: number, stalledCount: number) {
  const code =
    `import time\nfor _ in range(${seconds * PRINTS_A_SECOND}):\n` +
    `    print(f"${TIME_MARK}{time.time() * 1000:017.3f}" + "x" * ${LINE_BYTES})\n    time.sleep(${1 / PRINTS_A_SECOND})`;
  const { id } = await api.session([code]);
  const feed = await api.follow(id);
  const wire = await api.wire();
  const options = {
    port: api.endpoint.port,
    requests: [api.bytes('GET', `/api/v3/notebook-sessions/${id}/events`)],
  };
  const readers = await Readers.open({ ...options, count: READERS, stalled: false });
  const stalled =
    stalledCount === 0 ? undefined : await Readers.open({ ...options, count: stalledCount, stalled: true });
  const before = residentBytes(pid);
  readers.count();
  const completed = feed.until(MARK.completed);
  expected(await wire.send(api.executeBytes(id)), 202);
  let peak = before;
  const watch = setInterval(() => {
    peak = Math.max(peak, residentBytes(pid));
  }, 100);
  await completed;
  clearInterval(watch);
  const { delaysMs } = await readers.finish();
  const cutOff = (await stalled?.finish())?.cutOff ?? 0;
  feed.close();
  wire.close();
  return { delaysMs, cutOff, growthMiB: (peak - before) / MIB };
}
