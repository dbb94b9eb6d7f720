/**
 * Loaded into a server by `--import`: makes profiles on demand. It listens on the Unix socket that BENCH_PROBE names; each
 * line is an order, each answer a line of JSON. Until the first order the probe does nothing.
 */
import { Session } from 'node:inspector/promises';
import { createServer } from 'node:net';
import { createInterface } from 'node:readline';

export type ProbeOrder = 'start cpu' | 'stop cpu' | 'start allocations' | 'stop allocations';

const CPU_INTERVAL_US = 250;
const ALLOCATION_INTERVAL_BYTES = 8_192;

async function obey(session: Session, order: ProbeOrder): Promise<unknown> {
  switch (order) {
    case 'start cpu':
      await session.post('Profiler.enable');
      await session.post('Profiler.setSamplingInterval', { interval: CPU_INTERVAL_US });
      return session.post('Profiler.start');
    case 'stop cpu':
      return (await session.post('Profiler.stop')).profile;
    case 'start allocations': {
      // Without these two options the profile would lack collected objects, which are nearly all.
      const collected = { includeObjectsCollectedByMajorGC: true, includeObjectsCollectedByMinorGC: true };
      const sampling = { samplingInterval: ALLOCATION_INTERVAL_BYTES, ...collected };
      return session.post('HeapProfiler.startSampling', sampling);
    }
    case 'stop allocations':
      return (await session.post('HeapProfiler.stopSampling')).profile;
  }
}

const path = process.env.BENCH_PROBE;
if (path !== undefined) {
  let session: Session | undefined;
  const server = createServer((socket) => {
    createInterface({ input: socket }).on('line', async (line) => {
      if (session === undefined) {
        session = new Session();
        session.connect();
      }
      socket.write(`${JSON.stringify((await obey(session, line as ProbeOrder)) ?? null)}\n`);
    });
    socket.on('error', () => undefined);
  });
  server.listen(path).unref();
}
