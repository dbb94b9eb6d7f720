/** The actor of a run, restored from the run's record, because runs have no snapshots. */
import { type RunInput, runMachine } from '#machines/run.ts';
import { type RunId, type SessionId, timeOfId } from '#src/base/ids.ts';
import { timestamp } from '#src/base/time/clock.ts';
import type { ActorSnapshot } from '#storage/records/actor-snapshots.ts';
import { runRecords } from '#storage/records/runs.ts';
import type { Store } from '#storage/store.ts';
import type { ActorId } from '../actors/address.ts';
import { parseEssentials } from './run-document.ts';

/** The version of the chart for which records are read. */
export const RUN_VERSION = 1;

/** Returns the state of a run's actor after a restart; undefined when there is no such run. */
export function storedRun(
  store: Pick<Store, 'get'>,
  { workspaceId, id }: ActorId,
): ActorSnapshot | undefined {
  const record = store.get(runRecords, workspaceId, id);
  if (record === undefined) return undefined;
  const { sessionId, status, kind, owner } = record;
  const isRunning = status === 'running';
  const context: RunInput = { workspaceId, runId: id as RunId, sessionId: sessionId as SessionId, kind };
  const createdAt = timestamp(timeOfId(id));
  return {
    machine: runMachine.id,
    machineVersion: RUN_VERSION,
    revision: isRunning ? 1 : 2,
    value: isRunning ? { running: 'active' } : status,
    context,
    createdAt,
    ...(owner === undefined ? {} : { owner }),
    // Large outputs are parsed only on an operator's request.
    get updatedAt() {
      return parseEssentials(record).finishedAt ?? createdAt;
    },
  };
}
