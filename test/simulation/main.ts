/** `npm run simulate`: simulates the whole server with its users and crashes, for one seed or for many. */
import { scriptOptions } from '#test/support/script-options.ts';
import { huntMutants } from './mutants/hunt.ts';
import { editsOf, MUTANTS } from './mutants/list.ts';
import { runSimulationWith } from './run-simulation.ts';
import { SCENARIOS, type Scenario } from './scenarios/list.ts';
import type { SeedsOptions } from './simulate-seeds.ts';
import { simulateHere } from './simulated-process.ts';

const USAGE = `Simulates the server with its users, its kernels, its disk and its crashes in virtual time. One seed decides everything that
happens, so a failure is repeated by its seed.

Usage: npm run simulate -- [options]

  --seed N           simulates this seed; 1
  --seeds A..B       simulates all of these seeds
  --limit S          begins no further seed after so many seconds of one core
  --seconds S        for how many simulated seconds users act in each seed; 20
  --workers N        how many workers the server has; 1: a server of one process
  --nodes N          on how many nodes (1 to 4) its kernels run; 0: on the machine of the server
  --users N          how many users there are; 3
  --talkers N        how many users talk with agents; drawn by default
  --schedulers N     how many users make jobs; drawn by default
  --hookers N        how many users make hooks; drawn by default
  --kills-at-jobs    the server is killed again and again, each time around the moment at which a job fires, or its run begins or ends
  --kills-at-hooks   the same, around the moments at which a hook gets an event, or sends a request or has its answer
  --calm             the server is never killed
  --times N          simulates each seed so often, and fails when its digests differ; 1
  --again-with NODE  simulates the same seeds in another process, too, by this program of Node.js (node, or the path of another
                     version), and fails when the digests of a seed differ
  --mutant NAME      plants a fault before; "--mutant help" lists them, and "--mutant all" looks for each of them, one after the other
  --coverage         names the states and events of charts that were not reached
  --scenario NAME    performs a scenario in place of users; "--scenario help" lists them, and "--scenario all" performs each of them whose
                     server has as many workers
  --shrink           looks for the least users, seconds and acts with which a seed fails
  --skip A-B,C-D     leaves out these acts of each user
  --trace            prints everything that happens
  -h, --help         shows this text`;

const values = scriptOptions(USAGE, {
  seed: { type: 'string', default: '1' },
  seeds: { type: 'string' },
  limit: { type: 'string' },
  seconds: { type: 'string', default: '20' },
  workers: { type: 'string', default: '1' },
  nodes: { type: 'string', default: '0' },
  users: { type: 'string', default: '3' },
  talkers: { type: 'string' },
  schedulers: { type: 'string' },
  hookers: { type: 'string' },
  mutant: { type: 'string' },
  times: { type: 'string', default: '1' },
  'again-with': { type: 'string' },
  coverage: { type: 'boolean', default: false },
  shrink: { type: 'boolean', default: false },
  skip: { type: 'string', default: '' },
  'kills-at-jobs': { type: 'boolean', default: false },
  'kills-at-hooks': { type: 'boolean', default: false },
  calm: { type: 'boolean', default: false },
  scenario: { type: 'string' },
  trace: { type: 'boolean', default: false },
});

if (values.mutant === 'help') {
  for (const { name, breaks } of MUTANTS) process.stdout.write(`${name.padEnd(32)}${breaks}\n`);
  process.exit(0);
}
const { scenario: wanted } = values;
if (wanted === 'help') {
  for (const { name, rule, workers = 1 } of SCENARIOS)
    process.stdout.write(`${name.padEnd(38)}${rule}${workers > 1 ? ` (--workers ${workers})` : ''}\n`);
  process.exit(0);
}
if (values.mutant === 'all') {
  const limits = [
    '--seeds',
    values.seeds ?? '1..100000',
    '--limit',
    values.limit ?? '60',
    '--seconds',
    values.seconds,
  ];
  await huntMutants(MUTANTS, limits, (line) => void process.stdout.write(`${line}\n`));
  process.exit(0);
}
const { 'again-with': otherNode } = values;
if (otherNode !== undefined) {
  const isSame = await compareProcesses(otherNode);
  process.exit(isSame ? 0 : 1);
}
simulateHere(values.mutant === undefined ? [] : editsOf(values.mutant), {
  workers: Number(values.workers) > 1,
  nodes: Number(values.nodes) > 0,
});
const { simulateSeeds } = await import('./simulate-seeds.ts');
const [first = 1, last = first] = (values.seeds ?? values.seed).split('..').map(Number);
const options: SeedsOptions = {
  first,
  last,
  limitS: Number(values.limit ?? Number.POSITIVE_INFINITY),
  times: Number(values.times),
  lists: values.coverage,
  shrinks: values.shrink,
  mutant: values.mutant,
  simulation: {
    seconds: Number(values.seconds),
    users: Number(values.users),
    workers: Number(values.workers),
    nodes: Number(values.nodes),
    ...(values.talkers !== undefined && { talkers: Number(values.talkers) }),
    ...(values.schedulers !== undefined && { schedulers: Number(values.schedulers) }),
    ...(values.hookers !== undefined && { hookers: Number(values.hookers) }),
    killsAround: values['kills-at-jobs'] ? 'jobs' : values['kills-at-hooks'] ? 'hooks' : undefined,
    crashes: !values.calm,
    keepsTrace: values.trace,
    skippedActs: partsOf(values.skip),
  },
  say: (line) => void process.stdout.write(`${line}\n`),
};
process.exit((await (wanted === undefined ? simulateSeeds(options) : playScenarios(wanted))) ? 0 : 1);

/** Performs the scenarios of this name. Resolves with whether no seed had a problem. */
async function playScenarios(name: string): Promise<boolean> {
  const { simulation, say } = options;
  const isWanted = (scenario: Scenario) =>
    name === 'all' ? (scenario.workers ?? 1) === simulation.workers : scenario.name === name;
  const chosen = SCENARIOS.filter(isWanted);
  let isSound = chosen.length > 0;
  for (const scenario of chosen) {
    const isKept = await simulateSeeds({ ...options, simulation: { ...simulation, scenario } });
    say(`scenario ${scenario.name}: ${isKept ? 'kept' : 'broken'}`);
    isSound &&= isKept;
  }
  return isSound;
}

/** Simulates the same in this version of Node.js and in another one. Resolves with whether all digests are the same. */
async function compareProcesses(program: string): Promise<boolean> {
  const options = process.argv.slice(2).filter((option, at, all) => {
    const isValue = all[at - 1] === '--again-with';
    return !isValue && !option.startsWith('--again-with');
  });
  const here = await runSimulationWith(process.execPath, ...options);
  const there = await runSimulationWith(program, ...options);
  const seeds = [...new Set([...here.digests.keys(), ...there.digests.keys()])];
  for (const { isSound, text } of [here, there]) if (!isSound) process.stdout.write(text);
  let same = 0;
  for (const seed of seeds) {
    const [digest, other] = [here.digests.get(seed), there.digests.get(seed)];
    if (digest === other) same++;
    process.stdout.write(
      `seed ${seed}: ${digest}, ${digest === other ? 'the same' : other} in the other process\n`,
    );
  }
  process.stdout.write(`${same} of ${seeds.length} seeds have one digest\n`);
  return here.isSound && there.isSound && seeds.length > 0 && same === seeds.length;
}

function partsOf(text: string): [number, number][] {
  const parts = text === '' ? [] : text.split(',');
  return parts.map((part) => {
    const [first = 0, end = first + 1] = part.split('-').map(Number);
    return [first, end];
  });
}
