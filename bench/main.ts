/**
 * `npm run bench`: measures a server that it starts itself, on loopback, and stops afterwards. command-line.ts has the
 * options. Figures go to standard output as a line of JSON for each scenario, and to standard error as tables.
 */
import { writeFileSync } from 'node:fs';
import { constants } from 'node:os';
import { join, resolve } from 'node:path';
import { fileURLToPath } from 'node:url';
import { EXIT, HELP, parseCommandLine, type Request, select, UsageError } from './command-line.ts';
import { describeMachine } from './machine.ts';
import { jsonLine, type Outcome, resultsMarkdown, table } from './report.ts';
import { perform, type Scenario } from './scenario.ts';
import { SCENARIOS } from './scenarios.ts';

const ROOT = fileURLToPath(new URL('../../', import.meta.url));

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
  else if (request.list) list(SCENARIOS);
  else await measure(select(SCENARIOS, request.names), request);
}

function list(all: readonly Pick<Scenario, 'name' | 'title'>[]): void {
  for (const { name, title } of all) process.stdout.write(`${name}: ${title}\n`);
}

async function measure(scenarios: readonly Scenario[], request: Request): Promise<void> {
  const machine = describeMachine(process.env.TROUPE_PYTHON ?? join(ROOT, '.venv', 'bin', 'python'));
  process.stderr.write(`${JSON.stringify(machine)}\n`);
  const outcomes: Outcome[] = [];
  for (const scenario of scenarios) {
    const outcome = await outcomeOf(scenario, request);
    outcomes.push(outcome);
    process.stdout.write(`${jsonLine(outcome)}\n`);
    process.stderr.write(`${table(outcome)}\n`);
  }
  if (request.write) writeFileSync(join(ROOT, 'bench', 'RESULTS.md'), resultsMarkdown(machine, outcomes));
  if (outcomes.some(({ error }) => error !== undefined)) process.exitCode = EXIT.failed;
}

async function outcomeOf(scenario: Scenario, { quick, server }: Request): Promise<Outcome> {
  const startedAt = performance.now();
  const seconds = () => (performance.now() - startedAt) / 1000;
  const main = server === undefined ? join(ROOT, 'dist', 'server', 'main.js') : resolve(server);
  try {
    return { scenario, measures: await perform(scenario, { quick, main }), seconds: seconds() };
  } catch (error) {
    const message = error instanceof Error ? error.message : String(error);
    return { scenario, seconds: seconds(), measures: [], error: message };
  }
}
