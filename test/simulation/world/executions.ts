/** The code that kernels of a world have run, and the questions that its models were asked. */
import type { World } from './world.ts';

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

/** Code has begun, or a model was asked. */
export function noteExecution(of: World, text: string): void {
  const all = executionsOf(of);
  all.set(text, { times: (all.get(text)?.times ?? 0) + 1, lastMs: of.nowMs });
  of.trace.add('ran', text);
}
