/** Describes a failure in few lines: what is wrong, what happened to the things that are named there, and how to repeat it. */
import { type SimulationOptions, type SimulationReport, simulate } from './simulation.ts';

const MAX_LINES = 60;
const MAX_PROBLEMS = 8;
const MAX_LINE_CHARS = 220;
/** Ids of resources, tokens of codes, and events. */
const NAMES =
  /\b(?:(?:run|conv|job|occ|hook|hev|dlv|hin)_[0-9a-z]{26}|nb_[0-9a-z]{26}|[kptewj]u\d+x\d+|fork \d+|[0-9a-f]{8,}-\d+)\b/g;
/** Code that a kernel begins. */
const BEGINNING = / ran (\w+) in (fork \d+)/;
/** The share of the lines that tell how it began, when there are too many. */
const BEGUN = 0.7;

/** Resolves with at most 60 lines. The seed is simulated once more to get its trace. */
export async function explain(
  { seed }: SimulationReport,
  problems: readonly string[],
  options: SimulationOptions,
  mutant: string | undefined,
): Promise<string[]> {
  const { lines } = await simulate(seed, { ...options, keepsTrace: true });
  const shown = problems.slice(0, MAX_PROBLEMS);
  const [first = ''] = problems;
  const names = new Set(first.match(NAMES));
  const kernels = lines.flatMap((line) => {
    const [, text = '', kernel = ''] = BEGINNING.exec(line) ?? [];
    return names.has(text) ? kernel : [];
  });
  for (const kernel of kernels) names.add(kernel);
  const form = new RegExp(`\\b(?:${[...names].join('|')})\\b`);
  // A name that is not in the part of a line that is shown is one of many there, as in a list.
  const isTold = (line: string) =>
    / (?:life|kill|clock|PROBLEM) /.test(line) ||
    (names.size > 0 && form.test(line.slice(0, MAX_LINE_CHARS)));
  const story = lines.filter(isTold);
  const end = story.findIndex((line) => line.includes(' PROBLEM '));
  const room = MAX_LINES - shown.length - 4;
  const told = story.slice(0, end === -1 ? undefined : end + 1);
  return [
    `seed ${seed} has ${problems.length} problems:`,
    ...shown.map((problem) => `  ${cut(problem)}`),
    names.size === 0 ? 'What happened:' : `What happened to ${[...names].join(', ')}:`,
    ...shortened(told, room).map((line) => `  ${cut(line.trimEnd())}`),
    `Again: npm run simulate -- --seed ${seed} ${argumentsOf(options, mutant)}`,
  ];
}

/** Returns at most so many lines: how it began, from the first line that has a name, and how it ended. */
function shortened(lines: readonly string[], most: number): string[] {
  if (lines.length <= most) return [...lines];
  const named = lines.findIndex((line) => !/ (?:life|kill|clock|PROBLEM) /.test(line));
  const first = Math.max(0, Math.min(named - 3, lines.length - most));
  const begun = Math.floor(most * BEGUN);
  const rest = lines.slice(first + begun);
  const shown = rest.slice(-(most - begun - 1));
  return [...lines.slice(first, first + begun), `(${rest.length - shown.length} lines)`, ...shown];
}

function cut(line: string): string {
  const one = line.replaceAll('\n', ' | ');
  return line.length <= MAX_LINE_CHARS ? one : `${one.slice(0, MAX_LINE_CHARS)}…`; // ASCII, for developers
}

function argumentsOf(
  {
    seconds,
    workers = 1,
    nodes = 0,
    users,
    talkers,
    schedulers,
    crashes,
    hookers,
    killsAround,
    scenario,
    skippedActs = [],
  }: SimulationOptions,
  mutant: string | undefined,
): string {
  const skipped = skippedActs.map((part) => part.join('-')).join(',');
  return [
    `--seconds ${seconds}`,
    ...(workers === 1 ? [] : [`--workers ${workers}`]),
    ...(nodes === 0 ? [] : [`--nodes ${nodes}`]),
    ...(users === undefined ? [] : [`--users ${users}`]),
    ...(talkers === undefined ? [] : [`--talkers ${talkers}`]),
    ...(schedulers === undefined ? [] : [`--schedulers ${schedulers}`]),
    ...(hookers === undefined ? [] : [`--hookers ${hookers}`]),
    ...(killsAround === undefined ? [] : [`--kills-at-${killsAround}`]),
    ...(crashes === false ? ['--calm'] : []),
    ...(skipped === '' ? [] : [`--skip ${skipped}`]),
    ...(mutant === undefined ? [] : [`--mutant ${mutant}`]),
    ...(scenario === undefined ? [] : [`--scenario ${scenario.name}`]),
  ].join(' ');
}
