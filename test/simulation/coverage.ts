/** Which events the charts of the server took in which states, and which refusals the users met. */
import { type AnyMachineSnapshot, type AnyStateMachine, StateMachine, type StateNode } from 'xstate';
import { agentSessionMachine } from '#machines/agent-session.ts';
import { environmentMachine } from '#machines/environment.ts';
import { hookMachine } from '#machines/hook.ts';
import { jobMachine } from '#machines/job.ts';
import { notebookSessionMachine } from '#machines/notebook-session.ts';
import { runMachine } from '#machines/run.ts';

const CHARTS: readonly AnyStateMachine[] = [
  notebookSessionMachine,
  agentSessionMachine,
  runMachine,
  jobMachine,
  hookMachine,
  environmentMachine,
];

const reached = new Set<string>();

interface Observed {
  getTransitionData(
    this: AnyStateMachine,
    snapshot: AnyMachineSnapshot,
    event: { readonly type: string },
  ): unknown;
}

/** Begins to note which events the states of this process get, and about which they are asked. */
export function observeCharts(): void {
  const observed = StateMachine.prototype as unknown as Observed;
  const { getTransitionData } = observed;
  observed.getTransitionData = function (snapshot, event) {
    reached.add(pairOf(this.id, pathOf(snapshot.value), nameOf(event.type)));
    return getTransitionData.call(this, snapshot, event);
  };
}

/** The part of a chart that was reached. */
export interface ChartCoverage {
  readonly chart: string;
  readonly reached: number;
  readonly possible: number;
  /** States with the events that they take and did not get. */
  readonly missing: readonly string[];
}

/** Returns the parts of the charts that simulations in this process have reached so far. */
export function coverage(): ChartCoverage[] {
  return CHARTS.map((machine) => {
    const pairs = pairsOf(machine);
    const missing = pairs.filter((pair) => !reached.has(pair)).sort();
    const names = missing.map((pair) => pair.slice(machine.id.length + 1)); // after the name of the chart
    return {
      chart: machine.id,
      reached: pairs.length - missing.length,
      possible: pairs.length,
      missing: names,
    };
  });
}

/** Returns every state × event for which the chart has a transition. */
function pairsOf(machine: AnyStateMachine): string[] {
  const leaves = leavesBelow(machine.root as unknown as StateNode);
  return leaves.flatMap((leaf) => {
    const events = new Set<string>();
    for (
      let node: StateNode | undefined = leaf;
      node !== undefined;
      node = node.parent as StateNode | undefined
    )
      for (const event of node.ownEvents) events.add(nameOf(event));
    return leaf.type === 'final'
      ? []
      : [...events].map((event) => pairOf(machine.id, leaf.path.join('.'), event));
  });
}

function leavesBelow(node: StateNode): StateNode[] {
  const children = Object.values(node.states) as StateNode[];
  return children.length === 0 ? [node] : children.flatMap(leavesBelow);
}

function pairOf(chart: string, state: string, event: string): string {
  return `${chart} ${state} × ${event}`;
}

/** Returns the name of an event without the ids that XState adds. */
function nameOf(type: string): string {
  const [, delay] = /^xstate\.after\.([^.]+)\./.exec(type) ?? [];
  if (delay !== undefined) return `after ${delay}`;
  return type.replace(/^xstate\.error\.actor\..*/, 'actor failed');
}

function pathOf(value: unknown): string {
  if (typeof value === 'string') return value;
  if (typeof value !== 'object' || value === null) return '';
  const [[state, below] = ['', '']] = Object.entries(value);
  const rest = pathOf(below);
  return rest === '' ? state : `${state}.${rest}`;
}
