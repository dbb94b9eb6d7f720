/** Counts the calls of our functions in this process, by V8's precise coverage. */
import { Session } from 'node:inspector/promises';

const OURS = /\/dist\/(src|machines|storage)\//;
const OF_THE_CALLER = /\/dist\/src\/contract\/client\//;

/** Calls by function, such as `src/http/edge/exchange.js #finish`. */
export type CallCounts = ReadonlyMap<string, number>;

/** Prepares and ends each counted piece of work; these calls are not counted. */
export interface Around {
  readonly before?: () => unknown;
  readonly after?: () => unknown;
}

/** On a busy machine most attempts meet a timer. */
const MAX_ATTEMPTS = 200;

/**
 * Resolves with the calls that the server's code makes while `work` runs, in the first attempt with at most `budget` calls, or else in
 * the quietest attempt: timers of a server in this process run between its steps, and are counted as well.
 */
export async function countCalls(
  work: () => Promise<unknown>,
  budget: number,
  { before, after }: Around = {},
): Promise<CallCounts> {
  const session = new Session();
  session.connect();
  try {
    await session.post('Profiler.enable');
    await session.post('Profiler.startPreciseCoverage', { callCount: true, detailed: false });
    let least: CallCounts | undefined;
    for (let i = 0; i < MAX_ATTEMPTS && (least === undefined || total(least) > budget); i++) {
      await before?.();
      await session.post('Profiler.takePreciseCoverage'); // the count begins at zero
      await work();
      const counts = summed((await session.post('Profiler.takePreciseCoverage')).result);
      await after?.();
      if (least === undefined || total(counts) < total(least)) least = counts;
    }
    return least!;
  } finally {
    await session.post('Profiler.stopPreciseCoverage');
    session.disconnect();
  }
}

/** Returns all calls together. */
export function total(counts: CallCounts): number {
  return [...counts.values()].reduce((sum, count) => sum + count, 0);
}

/** Returns the functions with their calls, file by file. */
export function described(counts: CallCounts): string {
  return [...counts]
    .sort(([a], [b]) => a.localeCompare(b))
    .map(([name, count]) => `${count} ${name}`)
    .join('\n');
}

function summed(scripts: readonly CoveredScript[]): CallCounts {
  const counts = new Map<string, number>();
  for (const { url, functions } of scripts) {
    if (!OURS.test(url) || OF_THE_CALLER.test(url)) continue;
    const file = url.slice(url.indexOf('/dist/') + '/dist/'.length);
    for (const { functionName, ranges } of functions) {
      const calls = ranges[0]?.count ?? 0;
      const name = `${file} ${functionName}`;
      if (calls > 0) counts.set(name, (counts.get(name) ?? 0) + calls);
    }
  }
  return counts;
}

interface CoveredScript {
  readonly url: string;
  readonly functions: readonly {
    readonly functionName: string;
    readonly ranges: readonly { readonly count: number }[];
  }[];
}
