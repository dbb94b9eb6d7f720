/**
 * `npm run bench [-- --only name[,name]] [--quick] [--write] [--list] [--server dist/server/main.js]`
 *
 * Measures a server that it starts itself, on loopback, and stops afterwards. With `--write` it writes RESULTS.md.
 * `--server` measures another build. BENCH_NODE_OPTIONS are options of Node.js for the server, such as `--cpu-prof`,
 * which shows where its time goes.
 */
import { writeFileSync } from 'node:fs';
import { join, resolve } from 'node:path';
import { fileURLToPath } from 'node:url';
import { parseArgs } from 'node:util';
import { describeMachine } from './machine.ts';
import { jsonLine, type Outcome, resultsMarkdown, table } from './report.ts';
import { perform, type Scenario } from './scenario.ts';
import { SCENARIOS } from './scenarios.ts';

const ROOT = fileURLToPath(new URL('../../', import.meta.url));

const { values: options } = parseArgs({
  options: {
    only: { type: 'string', multiple: true },
    quick: { type: 'boolean', default: false },
    write: { type: 'boolean', default: false },
    list: { type: 'boolean', default: false },
    server: { type: 'string', default: join(ROOT, 'dist', 'server', 'main.js') },
  },
});

// A signal to this process also ends the servers that it has started.
for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP'] as const) process.once(signal, () => process.exit(1));

const wanted = (options.only ?? []).flatMap((names) => names.split(','));
const chosen = SCENARIOS.filter(
  ({ name }) => wanted.length === 0 || wanted.some((part) => name.includes(part)),
);

if (options.list) for (const { name, title } of SCENARIOS) process.stdout.write(`${name}: ${title}\n`);
else if (chosen.length === 0) throw new Error(`No scenario is named ${wanted.join(' or ')}; see --list.`);
else await measure(chosen);

async function measure(scenarios: readonly Scenario[]): Promise<void> {
  const machine = describeMachine(process.env.TROUPE_PYTHON ?? join(ROOT, '.venv', 'bin', 'python'));
  process.stderr.write(`${JSON.stringify(machine)}\n`);
  const outcomes: Outcome[] = [];
  for (const scenario of scenarios) {
    const outcome = await outcomeOf(scenario);
    outcomes.push(outcome);
    process.stdout.write(`${jsonLine(outcome)}\n`);
    process.stderr.write(`${table(outcome)}\n`);
  }
  if (options.write) writeFileSync(join(ROOT, 'bench', 'RESULTS.md'), resultsMarkdown(machine, outcomes));
  if (outcomes.some(({ error }) => error !== undefined)) process.exitCode = 1;
}

async function outcomeOf(scenario: Scenario): Promise<Outcome> {
  const startedAt = performance.now();
  const seconds = () => (performance.now() - startedAt) / 1000;
  try {
    const measures = await perform(scenario, { quick: options.quick, main: resolve(options.server) });
    return { scenario, seconds: seconds(), measures };
  } catch (error) {
    const message = error instanceof Error ? error.message : String(error);
    return { scenario, seconds: seconds(), measures: [], error: message };
  }
}
