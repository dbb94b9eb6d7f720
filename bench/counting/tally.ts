/**
 * Counts the cost of one unit of work for the server process, in figures that hardly depend on the
 * machine: processor time, system calls, bytes, frames, commits, allocations. It uses a server of
 * its own, because counting slows the server down.
 */
import { join } from 'node:path';
import type { Api } from '../api.ts';
import { Vendor } from '../load/vendor.ts';
import { atMost, type Measure, type Unit } from '../measure.ts';
import { contextSwitches, cpuMs, mainThreadMs, processTree } from '../processes.ts';
import type { LaunchedServer, ServerSettings } from '../server.ts';
import { temporaryFolder } from '../temporary-folder.ts';
import { allocatedBytes, PROBE_OPTION, Probe } from './probe-client.ts';
import { type SystemCalls, systemCallsDuring } from './syscalls.ts';
import type { PreparedWork, UnitOfWork } from './unit.ts';

const KIB = 1024;
/** The system calls that are shown by name, the most frequent first. */
const NAMED_CALLS = 4;
const COMMITS = /^troupe_store_commit_duration_seconds_count(?:\{.*\})? (\d+)/m;

/** Starts a server with these settings. */
export type Launch = (settings: ServerSettings) => Promise<LaunchedServer>;

/** A server with a probe in it, and the work on it. */
export interface Probed {
  readonly server: LaunchedServer;
  readonly probe: Probe;
  readonly work: PreparedWork;
}

/** Calls `use` with a server on which the unit has already been done some times. */
export async function withProbe<T>(
  unit: UnitOfWork,
  launch: Launch,
  warmUp: number,
  use: (probed: Probed) => Promise<T>,
): Promise<T> {
  const folder = temporaryFolder('probe');
  const vendor = 'prepareWith' in unit ? await Vendor.start() : undefined;
  const socket = join(folder.path, 'probe');
  try {
    const environment = { BENCH_PROBE: socket, ...unit.environment, ...vendor?.environment };
    const server = await launch({ nodeOptions: [PROBE_OPTION], environment });
    const probe = await Probe.open(socket);
    const work = 'prepareWith' in unit ? await unit.prepareWith(server, vendor!) : await unit.prepare(server);
    await work.perform(warmUp);
    const result = await use({ server, probe, work });
    probe.close();
    await server.end();
    return result;
  } finally {
    vendor?.end();
    folder.remove();
  }
}

/** Returns the cost of one unit. */
export function tally(unit: UnitOfWork, launch: Launch, quick: boolean): Promise<readonly Measure[]> {
  const count = quick ? (unit.quickCount ?? Math.ceil(unit.count / 10)) : unit.count;
  return withProbe(unit, launch, Math.ceil(count / 2), async ({ server, probe, work }) => {
    const perform = async () => void (await work.perform(count));
    const plain = await plainCosts(server, work, perform);
    const bytes = allocatedBytes(await probe.allocations(perform));
    const calls = await systemCallsDuring(server.pid, perform);
    const each = (label: string, total: number, of: Unit) =>
      atMost(`${unit.name}: ${label}`, total / count, of);
    return [
      each('CPU of the main thread', plain.mainMs * 1000, 'µs'),
      each('CPU of the whole server', plain.serverMs * 1000, 'µs'),
      each('CPU of its kernels', plain.kernelMs * 1000, 'µs'),
      each('context switches', plain.switches, ''),
      each('commits', plain.commits, ''),
      ...(plain.frames === undefined ? [] : [each('frames', plain.frames, '')]),
      ...(plain.frameBytes === undefined ? [] : [each('bytes of frames', plain.frameBytes / KIB, 'KiB')]),
      each('allocated by V8', bytes / KIB, 'KiB'),
      ...(calls === undefined ? [] : callMeasures(calls, each)),
    ];
  });
}

async function plainCosts(
  { pid, api }: LaunchedServer,
  { feed }: PreparedWork,
  perform: () => Promise<void>,
) {
  const children = () => processTree(pid).filter((one) => one !== pid);
  feed?.keep();
  const commits = await commitsOf(api);
  const before = [mainThreadMs(pid), cpuMs([pid]), cpuMs(children()), contextSwitches(pid)] as const;
  await perform();
  const after = [mainThreadMs(pid), cpuMs([pid]), cpuMs(children()), contextSwitches(pid)] as const;
  const [mainMs, serverMs, kernelMs, switches] = after.map((value, i) => value - before[i]!);
  return {
    mainMs: mainMs!,
    serverMs: serverMs!,
    kernelMs: Math.max(0, kernelMs!), // kernels that have ended are missing in the second sum
    switches: switches!,
    commits: (await commitsOf(api)) - commits,
    frames: feed?.events().length,
    frameBytes: feed?.keptBytes,
  };
}

/** Returns the number of commits since the start of the server. */
async function commitsOf(api: Api): Promise<number> {
  const wire = await api.wire();
  const { body } = await wire.send(api.bytes('GET', '/metrics'));
  wire.close();
  return Number(COMMITS.exec(body.toString('utf8'))?.[1] ?? 0);
}

function callMeasures(
  { byName, total, socketBytes, fileBytes, flushes }: SystemCalls,
  each: (label: string, total: number, of: Unit) => Measure,
): readonly Measure[] {
  const named = [...byName].toSorted(([, a], [, b]) => b - a).slice(0, NAMED_CALLS);
  return [
    each('system calls', total, ''),
    ...named.map(([name, count]) => each(`system calls, ${name}`, count, '')),
    each('flushes', flushes, ''),
    each('bytes to sockets', socketBytes / KIB, 'KiB'),
    each('bytes to files', fileBytes / KIB, 'KiB'),
  ];
}
