import assert from 'node:assert/strict';
import test, { type TestContext } from 'node:test';
import type { AnyMachineSnapshot, AnyStateMachine, StateValue } from 'xstate';
import type { ErrorCode } from '#src/base/errors/errors.ts';
import type { WorkspaceId } from '#src/base/ids.ts';
import type { Address } from '#src/runtime/actors/address.ts';
import { refusal } from '#src/runtime/actors/refusal.ts';

/** The effect of one event in one state: it leads to a state (perhaps the same one), is refused, or is ignored. */
export type Cell<State extends string> = { to: State } | { refused: ErrorCode } | 'ignored';

/** Every state against every event; a missing cell does not compile. */
export type Table<State extends string, Event extends string> = Record<State, Record<Event, Cell<State>>>;

/** A machine, and the table of its events. */
export interface TestedTable<State extends string, Event extends string> {
  /** The subject of the tests' names, such as "a run". */
  readonly what: string;
  readonly machine: AnyStateMachine;
  readonly table: Table<State, Event>;
  /** Leaf states that have no row, because they are left at once. */
  readonly transient?: readonly string[];
  /** Returns the state of the chart that a row is about; absent where both have the same name. */
  stateOf?(row: State): string;
  /** Returns the effects of all events in the state of a row, by name. */
  effects(row: State, t: TestContext): Readonly<Record<string, Cell<string>>>;
}

/** Makes the tests that every machine has: each row holds, and every state of the chart has one. */
export function testTable<State extends string, Event extends string>({
  what,
  machine,
  table,
  transient = [],
  stateOf = (row) => row,
  effects,
}: TestedTable<State, Event>): void {
  const rows = Object.keys(table) as State[];
  for (const row of rows) {
    test(`${what} in ${row} takes, refuses or ignores every event as the row of the table says`, (t) => {
      assert.deepEqual(effects(row, t), table[row]);
    });
  }

  test(`the table of ${what} has a row for every state of the chart`, () => {
    const states = new Set([...rows.map(stateOf), ...transient]);
    assert.deepEqual(leavesOf(machine), [...states].sort());
  });
}

/** Returns the effects of events, each on an actor of its own. */
export function outcomes(
  events: Readonly<Record<string, { readonly type: string }>>,
  actorFor: () => Sendable,
): Record<string, Cell<string>> {
  return Object.fromEntries(
    Object.entries(events).map(([name, event]) => [name, outcome(actorFor(), event)]),
  );
}

export interface Sendable {
  getSnapshot(): unknown;
  send(event: never): void;
}

const SOMEONE: Address = { workspaceId: 'ws_1' as WorkspaceId, kind: 'actor', id: 'a1' };

/** Sends one event as the runtime does, and returns its effect. */
export function outcome(actor: Sendable, event: { readonly type: string }): Cell<string> {
  const before = actor.getSnapshot() as AnyMachineSnapshot;
  if (before.can(event)) {
    actor.send(event as never);
    return { to: leafOf((actor.getSnapshot() as AnyMachineSnapshot).value) };
  }
  if (before.status === 'active') actor.send(event as never);
  const after = actor.getSnapshot() as AnyMachineSnapshot;
  assert.deepEqual(after.value, before.value, 'an event that is not taken moves nothing');
  assert.deepEqual(after.context, before.context, 'an event that is not taken changes no fact');
  const code = refusalCode(before, event.type);
  return code === undefined ? 'ignored' : { refused: code };
}

/** Sends an event as the runtime reports a fact: only when the state takes it. */
export function tell(actor: Sendable, event: { readonly type: string }): void {
  if ((actor.getSnapshot() as AnyMachineSnapshot).can(event)) actor.send(event as never);
}

/** Returns the path of a state, such as `live.busy.running` for `{ live: { busy: 'running' } }`. */
export function leafOf(value: StateValue): string {
  if (typeof value === 'string') return value;
  const [[key, inner]] = Object.entries(value) as [[string, StateValue]];
  return `${key}.${leafOf(inner)}`;
}

/** The leaf states that a chart declares, without its id. */
function leavesOf(machine: AnyStateMachine): string[] {
  const leaves: string[] = [];
  const open: AnyStateMachine['root'][] = [machine.root];
  for (let node = open.pop(); node !== undefined; node = open.pop()) {
    if (node.type === 'atomic' || node.type === 'final') leaves.push(node.path.join('.'));
    open.push(...Object.values(node.states));
  }
  return leaves.sort();
}

/** A snapshot as a restarted server finds it: value and context, through JSON. */
export function stored<M extends AnyStateMachine>(
  machine: M,
  snapshot: unknown,
): ReturnType<M['resolveState']> {
  const { value, context } = snapshot as AnyMachineSnapshot;
  const facts: unknown = JSON.parse(JSON.stringify(context));
  assert.deepEqual(facts, context, 'a context is plain JSON');
  return machine.resolveState({ value, context: facts as never }) as ReturnType<M['resolveState']>;
}

function refusalCode(snapshot: AnyMachineSnapshot, eventType: string): ErrorCode | undefined {
  const metas = Object.values(snapshot.getMeta() as Record<string, { refuse?: Record<string, string> }>);
  if (!metas.some((meta) => meta?.refuse?.[eventType] !== undefined)) return undefined;
  return refusal(snapshot, SOMEONE, eventType).code;
}
