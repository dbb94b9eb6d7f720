/** Statecharts as data: their structure for operators, and the commands that a state takes and refuses. */
import type { AnyStateMachine, AnyStateNode, AnyTransitionDefinition } from 'xstate';
import { CATALOGUE, isErrorCode } from '#src/base/errors/errors.ts';

export interface ChartTransition {
  /** The type of the event, `after <delay>`, or an empty text for a transition that is taken at once. */
  readonly event: string;
  /** The ids of the target states; empty when the actor stays in its state. */
  readonly targets: readonly string[];
  readonly guard: string | null;
  readonly actions: readonly string[];
}

export interface ChartState {
  readonly id: string;
  readonly name: string;
  readonly type: string;
  readonly initial: string | null;
  readonly tags: readonly string[];
  /** The error codes of refused events, by the events' types. */
  readonly refuses: Readonly<Record<string, string>>;
  readonly runs: readonly string[];
  readonly transitions: readonly ChartTransition[];
  readonly states: readonly ChartState[];
}

/** The commands that a state takes and refuses. If a command is in both lists, its data decide. */
export interface Answers {
  readonly takes: readonly string[];
  readonly refuses: readonly {
    readonly type: string;
    readonly code: string;
    readonly title: string;
    readonly advice: string | null;
  }[];
}

/** Returns the definition of a chart as JSON. */
export function chartOf(machine: AnyStateMachine): ChartState {
  return describe(machine.root);
}

/**
 * Returns the commands that the state takes and refuses. The deepest active state with a rule about an event decides.
 */
export function answersOf(machine: AnyStateMachine, value: unknown): Answers {
  const nodes = [...activeNodes(machine.root, value)].sort((a, b) => b.path.length - a.path.length);
  const takes = new Set<string>();
  const certain = new Set<string>();
  for (const type of new Set(nodes.flatMap(({ transitions }) => [...transitions.keys()]))) {
    if (type === '' || type.startsWith('xstate.')) continue;
    const deciding = nodes.find(({ transitions }) => transitions.has(type));
    const candidates = deciding?.transitions.get(type) ?? [];
    if (candidates.some(changes)) takes.add(type);
    if (candidates.some((candidate) => changes(candidate) && candidate.guard === undefined))
      certain.add(type);
  }
  const refuses = new Map<string, string>();
  for (const node of nodes) {
    for (const [type, code] of Object.entries(refusalsOf(node))) {
      if (!refuses.has(type) && !certain.has(type)) refuses.set(type, code);
    }
  }
  return {
    takes: [...takes].sort(),
    refuses: [...refuses].map(([type, code]) => ({ type, code, ...adviceOf(code) })),
  };
}

function* activeNodes(node: AnyStateNode, value: unknown): Generator<AnyStateNode> {
  yield node;
  if (typeof value === 'string') {
    const child = node.states[value];
    if (child !== undefined) yield child;
    return;
  }
  for (const [name, below] of Object.entries(Object(value))) {
    const child = node.states[name];
    if (child !== undefined) yield* activeNodes(child, below);
  }
}

/** A transition without a target or an action refuses its event. */
function changes({ target, actions }: AnyTransitionDefinition): boolean {
  return target !== undefined || actions.length > 0;
}

/** Returns the catalogue's entry for the code of a refusal. */
export function adviceOf(code: string): { title: string; advice: string | null } {
  if (!isErrorCode(code)) return { title: code, advice: null };
  const { title, advice }: { title: string; advice?: string } = CATALOGUE[code];
  return { title, advice: advice ?? null };
}

function refusalsOf(node: AnyStateNode): Readonly<Record<string, string>> {
  const meta: { readonly refuse?: Readonly<Record<string, string>> } = Object(node.meta);
  return meta.refuse ?? {};
}

function describe(node: AnyStateNode): ChartState {
  const { id, key, type, tags, invoke } = node;
  const transitions = [...node.transitions.values(), ...(node.always === undefined ? [] : [node.always])];
  const initial = type === 'compound' ? node.initial.target[0]?.key : undefined;
  return {
    id,
    name: key,
    type,
    initial: initial ?? null,
    tags: [...tags],
    refuses: refusalsOf(node),
    runs: invoke.map(({ src }) => nameOf(src)),
    transitions: transitions.flat().map((transition) => ({
      event: eventName(transition.eventType),
      targets: (transition.target ?? []).map((target: AnyStateNode) => target.id),
      guard: transition.guard === undefined ? null : nameOf(transition.guard),
      actions: transition.actions.map(nameOf),
    })),
    states: Object.values(node.states).map(describe),
  };
}

/** Returns `after cancelGrace` for the event of the delay `cancelGrace`, to whose name XState adds the id of the state. */
function eventName(type: string): string {
  const [, delay] = /^xstate\.after\.([^.]+)\./.exec(type) ?? [];
  return delay === undefined ? type : `after ${delay}`;
}

/** Returns the name of a guard, an action or an actor; `inline` if the chart gives it no name. */
function nameOf(named: unknown): string {
  if (typeof named === 'string') return named;
  const { type }: { type?: unknown } = Object(named);
  return typeof type === 'string' && type !== '' ? type : 'inline';
}
