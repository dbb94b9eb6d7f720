/**
 * `npm run bench`: measures a server that it starts itself, on loopback, and stops afterwards. command-line.ts has the
 * options. Figures go to standard output as a line of JSON for each scenario, and to standard error as tables.
 */
import { constants } from 'node:os';
import { join, resolve } from 'node:path';
import { fileURLToPath } from 'node:url';
import { EXIT, HELP, parseCommandLine, type Request, select, UsageError } from './command-line.ts';
import { describeMachine, type Machine } from './machine.ts';
import type { Comparison } from './peers/comparison.ts';
import { COMPARISONS } from './peers/comparisons.ts';
import { measurePeers } from './peers/measure-peers.ts';
import { plotOf } from './peers/plot.ts';
import { ratiosSection } from './peers/ratio-report.ts';
import { CPU_GRAPH } from './profile/profiles.ts';
import { jsonLine, type Outcome, sectionOf, table } from './report.ts';
import { writeFlameGraph, writePlot, writeResults } from './results-file.ts';
import { perform, profile, type Scenario, Skipped } from './scenario.ts';
import { SCENARIOS } from './scenarios.ts';

const ROOT = fileURLToPath(new URL('../../', import.meta.url));
const BENCH = join(ROOT, 'bench');

process.setMaxListeners(100); // every server and folder ends with this process

// A signal to this process also ends the servers that it has started.
for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP'] as const) {
  process.once(signal, () => process.exit(128 + constants.signals[signal]));
}

try {
  await obey(parseCommandLine(process.argv.slice(2)));
} catch (error) {
  if (!(error instanceof UsageError)) throw error;
  process.stderr.write(`bench: ${error.message}\n`);
  process.exitCode = EXIT.usage;
}

async function obey(request: Request): Promise<void> {
  if (request.help) process.stdout.write(HELP);
  else if (request.list) list(request.peers ? COMPARISONS : SCENARIOS);
  else if (request.peers) await comparePeers(select(COMPARISONS, request.names), request);
  else if (request.profile) await makeProfiles(select(SCENARIOS, request.names), request);
  else await measure(select(SCENARIOS, request.names), request);
}

function list(all: readonly { readonly name: string; readonly title: string }[]): void {
  for (const { name, title } of all) process.stdout.write(`${name}: ${title}\n`);
}

/** Returns the description of the machine, before the measurements put load on it. */
function announceMachine(): Machine {
  const machine = describeMachine(process.env.TROUPE_PYTHON ?? join(ROOT, '.venv', 'bin', 'python'));
  process.stderr.write(`${JSON.stringify(machine)}\n`);
  return machine;
}

async function measure(scenarios: readonly Scenario[], request: Request): Promise<void> {
  const machine = announceMachine();
  const outcomes: Outcome[] = [];
  for (const scenario of scenarios) {
    const outcome = await outcomeOf(scenario, request);
    outcomes.push(outcome);
    process.stdout.write(`${jsonLine(outcome)}\n`);
    process.stderr.write(`${table(outcome)}\n`);
  }
  if (request.write) writeResults(BENCH, machine, outcomes.map(sectionOf));
  if (outcomes.some(({ error }) => error !== undefined)) process.exitCode = EXIT.failed;
}

async function makeProfiles(scenarios: readonly Scenario[], request: Request): Promise<void> {
  for (const scenario of scenarios) {
    const how = { quick: request.quick, seconds: request.seconds, main: programOf(request) };
    const paths = await profile(scenario, join(ROOT, '.bench-profiles'), how);
    for (const path of paths) process.stdout.write(`${path}\n`);
    const [graph] = paths.filter((path) => path.endsWith(CPU_GRAPH));
    if (request.write && graph !== undefined) writeFlameGraph(BENCH, scenario.name, graph);
    if (paths.length === 0) process.stderr.write(`bench: ${scenario.name} has no work to profile.\n`);
  }
}

async function comparePeers(comparisons: readonly Comparison[], request: Request): Promise<void> {
  const machine = announceMachine();
  const { quick, young } = request;
  const { outcomes, contestants } = await measurePeers(comparisons, {
    quick,
    young,
    main: programOf(request),
  });
  if (request.write) {
    writeResults(BENCH, machine, [ratiosSection(outcomes, contestants, young)]);
    if (!young) for (const outcome of outcomes) writePlot(BENCH, outcome.comparison.name, plotOf(outcome));
  }
  if (outcomes.some(({ figures }) => figures.every(({ rounds }) => rounds.length === 0))) {
    process.exitCode = EXIT.failed;
  }
}

function programOf({ server }: Request): string {
  return server === undefined ? join(ROOT, 'dist', 'server', 'main.js') : resolve(server);
}

async function outcomeOf(scenario: Scenario, request: Request): Promise<Outcome> {
  const startedAt = performance.now();
  const seconds = () => (performance.now() - startedAt) / 1000;
  const { quick, seconds: forS } = request;
  try {
    const how = { quick, seconds: forS, main: programOf(request) };
    const measures = await perform(scenario, how);
    return { scenario, seconds: seconds(), measures };
  } catch (error) {
    const message = error instanceof Error ? error.message : String(error);
    const why = error instanceof Skipped ? { skipped: message } : { error: message };
    return { scenario, seconds: seconds(), measures: [], ...why };
  }
}
