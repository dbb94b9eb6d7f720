// Which test files run with `TROUPE_TEST_WORKERS`: those that start a server with the fixture, except for a few.
import { existsSync, readFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { ROOT } from './setup.mjs';

const FIXTURE = 'test/support/server-fixture.ts';
const IMPORT = /(?:from|import) '(#test\/|\.{1,2}\/)([^']+\.ts)'/g;

/**
 * Files and folders whose servers do not get the requested workers, each with the reason. They do
 * not test a server of several workers.
 */
const OF_ONE_PROCESS = {
  'test/cluster/': 'each starts the workers that it needs',
  'test/faults/': 'a kill point ends one process; worker-deaths.test.ts covers the death of a worker',
  'test/escape/': 'processes.test.ts starts workers itself; the confinement of kernels is the same',
  'test/corpus/': 'marimo is compared in one kernel, which knows nothing of workers',
  'test/oracle/': 'as the corpus',
  'test/fuzz/': 'it makes requests by the thousands, and a worker handles one like a single process',
  'test/soak/': 'a short soak of one process',
  'test/journeys/requests/request-calls.test.ts': 'it counts the calls of the server in its own process',
  'test/journeys/events/stream-memory.test.ts':
    'its reader and its two thousand subscribers are one process, which is too slow while three workers run on two cores',
};

/** Returns the test files that start a server which may have several workers. */
export function testsForWorkers(sources) {
  const exceptions = Object.keys(OF_ONE_PROCESS);
  return sources.filter(
    (file) => !exceptions.some((exception) => file.startsWith(exception)) && reaches(file, FIXTURE),
  );
}

/** Returns whether a file imports another one, directly or through others. */
function reaches(file, wanted, seen = new Set()) {
  if (file === wanted) return true;
  if (seen.has(file) || !existsSync(join(ROOT, file))) return false;
  seen.add(file);
  const imports = [...readFileSync(join(ROOT, file), 'utf8').matchAll(IMPORT)].map(([, from, path]) =>
    join(from === '#test/' ? 'test' : join(dirname(file), from), path),
  );
  return imports.some((next) => reaches(next, wanted, seen));
}
