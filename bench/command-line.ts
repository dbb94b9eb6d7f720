/** The arguments of `npm run bench`, and the text of `--help`. */
import { parseArgs } from 'node:util';
import { nearest } from '#src/base/config/spelling.ts';

/** A mistake in the arguments. Its message is for the user and takes one line. */
export class UsageError extends Error {}

/** Exit codes besides 0. A process that ends by a signal has 128 and the number of the signal. */
export const EXIT = { failed: 1, usage: 2 } as const;

/** A measurement that can be selected by name. */
interface Named {
  readonly name: string;
  readonly title: string;
}

/** The requested measurements. */
export interface Request {
  readonly help: boolean;
  readonly list: boolean;
  /** Compare with other servers instead of measuring Troupe alone. */
  readonly peers: boolean;
  /** Compare servers that were started ten seconds ago. */
  readonly young: boolean;
  readonly quick: boolean;
  /** For how many seconds to measure, where a scenario has no number of samples. */
  readonly seconds: number | undefined;
  readonly write: boolean;
  readonly profile: boolean;
  /** The file of the server's program, when it is not this build's. */
  readonly server: string | undefined;
  /** Names of scenarios, or parts of names. None means all scenarios. */
  readonly names: readonly string[];
}

const OPTIONS = {
  help: { type: 'boolean', short: 'h', default: false },
  list: { type: 'boolean', default: false },
  peers: { type: 'boolean', default: false },
  young: { type: 'boolean', default: false },
  quick: { type: 'boolean', default: false },
  seconds: { type: 'string' },
  write: { type: 'boolean', default: false },
  profile: { type: 'boolean', default: false },
  server: { type: 'string' },
} as const;

/** The text of `--help`. */
export const HELP = `Measures a server that it starts itself, on loopback, and stops afterwards.

Usage: npm run bench -- [scenario ...] [options]

  scenario     runs only these, such as \`gets creates\`; a part of a name selects all that have it

  --list       shows the scenarios; with --peers the comparisons
  --peers      measures Troupe, Jupyter Server, marimo's server and the limits of this machine in turns,
               and compares them; the first time it installs the peers below .bench-packages/
  --young      with --peers: compares servers that were started ten seconds ago, new ones in each round
  --profile    writes a CPU profile and a flame graph of the server for each scenario below .bench-profiles/
  --quick      takes few samples, to see that everything works; the figures are not for publication
  --seconds <n>
               measures for so long in scenarios that have no number of samples (tenants)
  --write      writes bench/RESULTS.md and, with --peers, a plot for each comparison in bench/plots/;
               with --profile only the flame graph of each scenario, in bench/profiles/
  --server <file>
               measures another build, such as another checkout's dist/server/main.js
  -h, --help   shows this text

BENCH_NODE_OPTIONS are further options of Node.js for the server.

Exit code: 0 when everything was measured, whether targets are met or not; 1 when a scenario failed;
2 when the command line is wrong.
`;

/** Returns the parsed arguments. Throws `UsageError`. */
export function parseCommandLine(args: readonly string[]): Request {
  try {
    const { values, positionals } = parseArgs({ args: [...args], options: OPTIONS, allowPositionals: true });
    if (values.peers && values.profile) throw new UsageError('--profile is for scenarios, not for --peers.');
    if (values.young && !values.peers) throw new UsageError('--young is for --peers.');
    const seconds = values.seconds === undefined ? undefined : Number(values.seconds);
    if (seconds !== undefined && !(seconds > 0)) throw new UsageError('--seconds needs a number above 0.');
    return {
      ...values,
      seconds,
      server: values.server,
      names: positionals.flatMap((part) => part.split(',')),
    };
  } catch (error) {
    if (error instanceof UsageError) throw error;
    throw new UsageError(unknownOption(error, args));
  }
}

/** Returns the members of `all` that the names select, in the order of `all`. Throws `UsageError` for a name that selects none. */
export function select<T extends Named>(all: readonly T[], names: readonly string[]): readonly T[] {
  const chosen = new Set<T>();
  for (const name of names) {
    const exact = all.filter((one) => one.name === name);
    const found = exact.length > 0 ? exact : all.filter((one) => name !== '' && one.name.includes(name));
    if (found.length === 0) throw new UsageError(`There is no scenario ${quoted(name)}.${hint(name, all)}`);
    for (const one of found) chosen.add(one);
  }
  return names.length === 0 ? all : all.filter((one) => chosen.has(one));
}

function hint(name: string, all: readonly Named[]): string {
  const near: string[] = [];
  for (let rest = all.map((one) => one.name); near.length < 3; ) {
    const next = nearest(name, rest);
    if (next === undefined) break;
    near.push(next);
    rest = rest.filter((one) => one !== next);
  }
  return near.length === 0 ? ' --list shows them all.' : ` Did you mean ${near.join(' or ')}?`;
}

function unknownOption(error: unknown, args: readonly string[]): string {
  const known = Object.keys(OPTIONS).map((name) => `--${name}`);
  const wrong = args.find((arg) => arg.startsWith('--') && !known.includes(arg.split('=')[0]!));
  const meant = wrong === undefined ? undefined : nearest(wrong, known);
  if (wrong !== undefined) {
    return `There is no option ${wrong}.${meant === undefined ? ' --help shows them all.' : ` Did you mean ${meant}?`}`;
  }
  const [line = ''] = (error instanceof Error ? error.message : String(error)).split('\n');
  return `${line.replace(/\.?$/, '.')} --help shows the options.`;
}

function quoted(name: string): string {
  return JSON.stringify(name);
}
