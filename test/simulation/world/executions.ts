/** The code that kernels of a world have run, and the questions that its models were asked. */
import { livesUnasked } from '../nodes/kernels-of-nodes.ts';
import type { Life, World } from './world.ts';

/** How often a code has run, and when it began the last time. */
export interface Executions {
  readonly times: number;
  readonly lastMs: number;
}

const executions = new WeakMap<World, Map<string, Executions>>();

/** Returns the executions of code, and the questions of users to models, by the text that makes each of them different. */
export function executionsOf(of: World): Map<string, Executions> {
  let found = executions.get(of);
  if (found === undefined) {
    found = new Map();
    executions.set(of, found);
  }
  return found;
}

const exits = new WeakMap<World, Set<string>>();

/** Returns the texts that were printed by code that has ended its kernel afterwards. */
export function exitsOf(of: World): Set<string> {
  const found = exits.get(of) ?? new Set<string>();
  exits.set(of, found);
  return found;
}

/** Code that has printed these texts ends its kernel. */
export function noteExit(of: World, texts: readonly string[]): void {
  for (const text of texts) exitsOf(of).add(text);
}

/** The kernels that have run code of each user, in their order. A user has one session. */
const kernels = new WeakMap<World, Map<string, Life[]>>();

/** A kernel runs no code of a session after another kernel of that session has. */
function noteKernel(of: World, user: string, kernel: Life): void {
  const all = kernels.get(of) ?? new Map<string, Life[]>();
  kernels.set(of, all);
  const before = all.get(user) ?? [];
  if (before.at(-1) === kernel) return;
  if (before.includes(kernel))
    of.problem(`${kernel.name} runs code of the session of ${user} after ${before.at(-1)?.name} has`);
  const rival = before.find((other) => livesUnasked(of, other));
  if (rival !== undefined)
    of.problem(`${kernel.name} runs code of the session of ${user} while ${rival.name} lives`);
  all.set(user, [...before, kernel]);
}

/** Code has begun in a kernel, or a model was asked. */
export function noteExecution(of: World, text: string, kernel?: Life): void {
  const [, user] = /^[kte](u\d+)x/.exec(text) ?? [];
  if (user !== undefined && kernel !== undefined) noteKernel(of, user, kernel);
  const all = executionsOf(of);
  all.set(text, { times: (all.get(text)?.times ?? 0) + 1, lastMs: of.nowMs });
  of.trace.add('ran', kernel === undefined ? text : `${text} in ${kernel.name}`);
}
