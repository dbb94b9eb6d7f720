import { timeText } from '#src/base/ids.ts';
import { defineMark, defineRecord } from '../codec.ts';

/** A hook as its owner has defined it. Its state is the snapshot of its actor. */
export interface HookRecord {
  /** The user with whose rights the hook learns of events. */
  readonly ownerId: string;
  readonly createdAt: string;
  readonly updatedAt: string;
  /** The secrets that sign its requests, newest first: at most two. */
  readonly secrets: readonly HookSecret[];
  /** JSON of the members that the owner sets. */
  readonly definition: Uint8Array;
}

/** A secret of a hook. The secret itself is sealed under the name. */
export interface HookSecret {
  readonly name: string;
  /** When an older secret signs no longer, RFC 3339; null for the newest. */
  readonly expiresAt: string | null;
}

/** Written in the home of the workspace. Key: workspace id, hook id. */
export const hookRecords = defineRecord<HookRecord>('hook', 1);

/** How many hooks a workspace has. Written in its home. Key: workspace id. */
export const hookCounts = defineRecord<number>('hook-count', 1);

/**
 * The types of events that the hooks of a workspace want; absent when it has no hook that is not paused. So the end of a run in a
 * workspace without hooks costs one read. Written in the home of the workspace. Key: workspace id.
 */
export const wantedEvents = defineRecord<readonly string[]>('hook-wanted', 1);

/**
 * An event that hooks want, as JSON. The home of the run or session writes it in the commit of the event, and the home of the
 * workspace makes deliveries of it and removes it. Key: workspace id, event id.
 */
export const hookEvents = defineRecord<Uint8Array>('hook-event', 1);

/** Index of the events and hooks that need attention, by time (`timed-places.ts`). */
export const hookPlaces = defineMark('hook-place');

/** The place of a hook in the index by time, and the numbers of its deliveries. Its home writes them. Key: workspace id, hook id. */
export interface HookBook {
  /** The place of the hook in `hookPlaces`; null when it needs no attention. */
  readonly place: string | null;
  /** How many deliveries wait. */
  readonly pending: number;
  /** How many deliveries are stored, those that wait included. */
  readonly stored: number;
  /** Absent while the hook is not paused. */
  readonly condition?: HookCondition;
}

/** Whether a person has paused a hook, or the hook itself. */
export const HOOK_CONDITIONS = ['paused', 'paused_by_itself'] as const;
export type HookCondition = (typeof HOOK_CONDITIONS)[number];

export const hookBooks = defineRecord<HookBook>('hook-book', 1);

/** Index of the paused hooks, in each slot of homes (`condition-tally.ts`). So a worker that starts counts them without reading the others. */
export const hookConditions = defineMark('hook-condition');

/** A delivery as JSON, in the form in which it is served, with its body. Key: workspace id, hook id, delivery id. */
export const deliveryRecords = defineRecord<Uint8Array>('hook-delivery', 1);

/** Index of the deliveries that wait, by the time of the next attempt. Key: workspace id, hook id, place (`queuePlaceOf`). */
export const hookQueue = defineMark('hook-queue');

/** A hook that fires a job. Written in the home of the job. Key: workspace id, job id, hook id. */
export interface HookInRecord {
  readonly name: string | null;
  readonly createdBy: string;
  readonly createdAt: string;
}
export const hookInRecords = defineRecord<HookInRecord>('hook-in', 1);

/** The job of a hook, for requests that name the hook alone. Written in the home of the job. Key: `SYSTEM`, hook id. */
export interface HookInHome {
  readonly workspaceId: string;
  readonly jobId: string;
  /** The notebook or conversation in whose home the job lives. */
  readonly homeId: string;
}
export const hookInHomes = defineRecord<HookInHome>('hook-in-home', 1);

/** JSON of the occurrence that a request has begun, by a hash of the request's id. Key: workspace id, hook id, hash. */
export const hookInFirings = defineRecord<Uint8Array>('hook-in-firing', 1);

/** Index of `hookInFirings` by time. Key: workspace id, hook id, time (fixed width) and hash. */
export const hookInAges = defineMark('hook-in-age');

const SEPARATOR = ' ';

/** Returns the place of a delivery whose next attempt is due at `ms`, in milliseconds since 1970. */
export function queuePlaceOf(ms: number, deliveryId: string): string {
  return `${timeText(ms)}${SEPARATOR}${deliveryId}`;
}

/** Returns the delivery of a place in `hookQueue`. */
export function deliveryAt(place: string): string {
  return place.slice(place.indexOf(SEPARATOR) + 1);
}
