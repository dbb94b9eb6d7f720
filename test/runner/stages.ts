/** The stages of a run: which files run together, and against which kind of server. */
import { availableParallelism } from 'node:os';
import { ImportGraph, type TestFile, type Tier } from './files.ts';

/** Files that run together. */
export interface Stage {
  readonly name: string;
  readonly files: readonly TestFile[];
  readonly lanes: number;
  readonly env: Readonly<Record<string, string>>;
}

/** Tests wait for half of their time. On one processor four lanes would make files so slow that browsers give up. */
const LANES = Math.min(4, 2 * availableParallelism());
const LANES_OF_LONG_TESTS = Math.min(3, 2 * availableParallelism());
const WORKERS = '3';
/**
 * Journeys that also run against a server of several workers each time, because requests meet in them or live state is shared. The
 * others do so when TROUPE_TEST_WORKERS is set.
 */
const JOURNEYS_OF_WORKERS = `
  agents/agents agents/agents-notebooks events/actor-events events/event-tickets events/observing
  events/reconnect notebooks/environments notebooks/notebook-secrets notebooks/notebook-session-ends
  notebooks/notebook-sessions notebooks/notebooks notebooks/notebooks-refused
  notebooks/sleeping-sessions notebooks/structural-errors requests/conditions requests/control
  requests/idempotency requests/idempotency-callers requests/inspection requests/lists
  requests/object-access requests/revocation runs/cancel runs/counted-work runs/execution-requests
  runs/executions runs/runs runs/waiting server/metrics workspaces/audit workspaces/file-quota
  workspaces/files workspaces/workspace-deletion
`
  .trim()
  .split(/\s+/)
  .map((name) => `test/journeys/${name}.test.ts`);
/** Journeys, attacks and notebooks that also run with their kernels on a node, which is another process of this machine. */
const FILES_ON_NODES = `
  corpus/notebooks escape/as-an-ordinary-user journeys/code/code-results journeys/events/large-outputs
  journeys/notebooks/kernel-death journeys/notebooks/outputs journeys/runs/cancel journeys/runs/executions
  journeys/runs/printed-text
`
  .trim()
  .split(/\s+/)
  .map((name) => `test/${name}.test.ts`);
/** Files and folders whose servers do not get the workers that TROUPE_TEST_WORKERS asks for, each with the reason. */
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

/** Returns the stages of `npm run quick`, `npm test` and `npm run whole` without the names of files. */
export function stagesOfTier(tier: Tier, files: readonly TestFile[]): Stage[] {
  const ofTier = (one: Tier) => files.filter((file) => file.tier === one);
  if (tier === 'quick') return [together('quick tests', ofTier('quick'))];
  if (tier === 'test') return [together('tests', [...ofTier('quick'), ...ofTier('test')])];
  const named = (paths: readonly string[]) => files.filter(({ path }) => paths.includes(path));
  return [
    together(
      'long tests',
      ofTier('whole').filter(({ alone }) => !alone),
      LANES_OF_LONG_TESTS,
    ),
    together(
      'tests that run alone',
      ofTier('whole').filter(({ alone }) => alone),
      1,
    ),
    {
      ...together(`journeys with ${WORKERS} workers`, named(JOURNEYS_OF_WORKERS), LANES_OF_LONG_TESTS),
      env: { TROUPE_TEST_WORKERS: WORKERS },
    },
    {
      ...together('tests with kernels on a node', named(FILES_ON_NODES), LANES_OF_LONG_TESTS),
      env: { TROUPE_TEST_NODES: '1' },
    },
  ];
}

/** Returns the stages of `npm test -- PATH …`, which runs these files whatever their tier. */
export function stagesOfFiles(files: readonly TestFile[]): Stage[] {
  return [
    together(
      'tests',
      files.filter(({ alone }) => !alone),
    ),
    together(
      'tests that run alone',
      files.filter(({ alone }) => alone),
      1,
    ),
  ].filter((stage) => stage.files.length > 0);
}

/** Returns the files that run with TROUPE_TEST_WORKERS: those that start a server which may have several workers. */
export function filesForWorkers(root: string, files: readonly TestFile[]): TestFile[] {
  const graph = new ImportGraph(root);
  const exceptions = Object.keys(OF_ONE_PROCESS);
  return files.filter(
    ({ path }) =>
      !exceptions.some((exception) => path.startsWith(exception)) &&
      graph.reaches(path, 'test/support/server-fixture.ts'),
  );
}

function together(name: string, files: readonly TestFile[], lanes = LANES): Stage {
  return { name, files, lanes, env: {} };
}
