/**
 * Counts of the workspace's actors: how many are in each state, their refusals, and the kinds in
 * which an actor has changed. `workspace-events.ts` keeps the counts up to date.
 */
import { signal } from '@preact/signals';
import type { ActorPage } from '#src/contract/wire/actor.ts';
import { place } from './route.ts';
import { onSignOut } from './sign-in.ts';

export interface RefusedChange {
  readonly key: string;
  readonly time: string;
  readonly kind: string;
  readonly id: string;
  /** The type of the event. */
  readonly event: string;
  readonly code: string;
  /** How often this command was refused in a row. */
  readonly count: number;
  readonly title: string;
  readonly advice: string | null;
}

const MAX_KEPT = 100;

/** How many actors are in each state; undefined until the server has sent the first counts. */
export const counts = signal<ActorPage['counts'] | undefined>(undefined);
/** Whether the server sends changes to this user, which it does for owners; undefined until the server has answered. */
export const isTold = signal<boolean | undefined>(undefined);
/** How often actors of each kind have changed. */
const changed = signal<Readonly<Record<string, number>>>({});
/** How often changes may have been missed. */
const gaps = signal(0);
/** Refusals by workspace, the newest first. */
const refused = signal<Readonly<Record<string, readonly RefusedChange[]>>>({});
let refusalCount = 0;

onSignOut(() => {
  counts.value = undefined;
  isTold.value = undefined;
  refused.value = {};
});

/** Returns a number that grows whenever actors of these kinds may have changed. */
export function changesOf(kinds: readonly string[]): number {
  return kinds.reduce((sum, kind) => sum + (changed.value[kind] ?? 0), gaps.value);
}

export function noteChanges(kinds: Iterable<string>): void {
  const next = { ...changed.peek() };
  for (const kind of kinds) next[kind] = (next[kind] ?? 0) + 1;
  changed.value = next;
}

export function noteGap(): void {
  gaps.value++;
}

/** Returns the refusals in the workspace since the console was opened, the newest first. */
export function refusals(): readonly RefusedChange[] {
  return refused.value[place.value.workspaceId] ?? [];
}

export function noteRefusal(workspaceId: string, refusal: Omit<RefusedChange, 'key'>): void {
  const before = refused.peek()[workspaceId] ?? [];
  const [last, ...others] = before;
  const isSame = last?.id === refusal.id && last.event === refusal.event && last.code === refusal.code;
  const after = isSame
    ? [{ ...refusal, key: last.key, count: last.count + refusal.count }, ...others]
    : [{ ...refusal, key: String(refusalCount++) }, ...before].slice(0, MAX_KEPT);
  refused.value = { ...refused.peek(), [workspaceId]: after };
}
