/**
 * Small actors for the runtime to run: a box that holds one item, and has a resource while it is
 * full.
 */
import type { TestContext } from 'node:test';
import { assign, type EventObject, emit, fromCallback, setup } from 'xstate';
import { AppError } from '#src/base/errors/errors.ts';
import type { WorkspaceId } from '#src/base/ids.ts';
import type { ActorKind } from '#src/runtime/actors/actor-kind.ts';
import type { ActorOwners } from '#src/runtime/actors/actor-owners.ts';
import type { Address } from '#src/runtime/actors/address.ts';
import { ActorRuntime } from '#src/runtime/actors/runtime.ts';
import { actorSnapshots } from '#storage/records/actor-snapshots.ts';
import type { Store } from '#storage/store.ts';
import { type LogLine, rememberingLog } from '#test/support/store/temporary-store.ts';

export interface BoxContext {
  readonly id: string;
  readonly thing: string | null;
  readonly restores: number;
}

type BoxEvent =
  | { type: 'put'; thing: string }
  | { type: 'take' | 'touch' | 'lift' | 'lower' | 'odd' | 'nameless' | 'burn' | 'break' | 'restored' };

export const BOX_VERSION = 3;

/** The record that all boxes share: ids of boxes, in the order in which they became full and empty. */
export interface Ownership {
  readonly taken: string[];
  readonly released: string[];
}

function boxMachine({ taken, released }: Ownership) {
  return setup({
    types: {} as {
      input: { id: string; breaks?: boolean };
      context: BoxContext;
      events: BoxEvent;
      emitted: { type: 'box.filled'; thing: string } | { type: 'box.emptied' | 'box.lifted' };
    },
    actors: {
      thing: fromCallback<EventObject, { id: string }>(({ input: { id } }) => {
        taken.push(id);
        return () => {
          released.push(id);
        };
      }),
    },
    actions: {
      fail: () => {
        throw new Error('the box broke');
      },
    },
  }).createMachine({
    id: 'box',
    context: ({ input }) => {
      if (input.breaks === true) throw new Error('the box is made of nothing');
      return { id: input.id, thing: null, restores: 0 };
    },
    initial: 'empty',
    on: { break: { actions: 'fail' }, burn: '.ashes' },
    states: {
      empty: {
        meta: { refuse: { take: 'session_not_ready', odd: 'no_such_code' } },
        on: {
          put: {
            target: 'full',
            actions: [
              assign({ thing: ({ event }) => event.thing }),
              emit(({ event }) => ({ type: 'box.filled' as const, thing: event.thing })),
            ],
          },
          touch: 'empty',
        },
      },
      full: {
        tags: 'resident',
        meta: { refuse: { put: 'session_busy' } },
        invoke: { src: 'thing', input: ({ context: { id } }) => ({ id }) },
        on: {
          lift: { target: 'lifted', actions: emit({ type: 'box.lifted' as const }) },
          take: {
            target: 'empty',
            actions: [assign({ thing: null }), emit({ type: 'box.emptied' as const })],
          },
          restored: {
            target: 'full',
            reenter: true,
            actions: assign({ restores: ({ context }) => context.restores + 1 }),
          },
        },
      },
      lifted: {
        tags: ['resident', 'unstored'],
        on: { lower: 'full', take: { target: 'empty', actions: assign({ thing: null }) } },
      },
      ashes: { type: 'final', meta: { refuse: { put: 'session_closed' } } },
    },
  });
}

export type BoxActors = ActorKind<ReturnType<typeof boxMachine>>;

export interface Boxes {
  readonly runtime: ActorRuntime;
  /** Each of these ids is a home of its own. */
  readonly actors: BoxActors;
  /** Another kind of actor, whose home is that of its workspace. */
  readonly bags: BoxActors;
  readonly owned: Ownership;
  readonly logged: LogLine[];
}

export function startBoxes(
  t: Pick<TestContext, 'after'>,
  store: Store,
  machineVersion = BOX_VERSION,
  owners?: ActorOwners,
): Boxes {
  const { log, lines } = rememberingLog();
  const owned: Ownership = { taken: [], released: [] };
  const runtime = new ActorRuntime(store, log, undefined, owners);
  const definition = {
    machine: boxMachine(owned),
    machineVersion,
    restored: { type: 'restored' },
    isCounted: true,
  } as const;
  const actors = runtime.define({ kind: 'box', ...definition, homeOf: ({ id }) => id });
  const bags = runtime.define({ kind: 'bag', ...definition });
  t.after(() => runtime.stopAll());
  return { runtime, actors, bags, owned, logged: lines };
}

export const WORKSPACE = 'ws_1' as WorkspaceId;

export function box(id: string): Address {
  return { workspaceId: WORKSPACE, kind: 'box', id };
}

export function put(thing: string) {
  return { type: 'put', thing } as const;
}

export function thingIn(actors: BoxActors, id: string): string | null {
  const peek = actors.peek(box(id));
  if (peek === undefined) throw new Error(`There is no box ${id}.`);
  return peek.snapshot.context.thing;
}

/** Returns the states of the committed boxes; ranges of the store contain only these. */
export function committedStates(store: Store): Record<string, unknown> {
  const entries = [...store.list(actorSnapshots, WORKSPACE, ['box'], { limit: 100_000 })];
  return Object.fromEntries(entries.map(({ id, value }) => [id, value.value]));
}

/** Returns a check of whether an error is a refusal with this code. */
export function refusedWith(code: string, status: number): (error: unknown) => boolean {
  return (error) => error instanceof AppError && error.code === code && error.status === status;
}
