/** Format 6 → 7: the runs of a workspace get an index by the user who submitted them, and one by their ends. */
import { unlessDamaged } from '../damaged.ts';
import { placeOf } from '../lists/places.ts';
import { endPlaces, runIndex, runRecords, userRuns } from '../records/runs.ts';
import type { Store } from '../store.ts';
import { type Pass, passOver, workspacesOf } from './conversion.ts';

/** The members of a stored run that the indexes need. */
interface Essentials {
  readonly createdBy?: unknown;
  readonly finishedAt?: unknown;
}

export function* indexUsersAndEnds(store: Store): Generator<Pass<unknown>> {
  for (const workspaceId of workspacesOf(store))
    yield passOver(runRecords, workspaceId, [], (tx, { document }, [id = '']) => {
      const entry = unlessDamaged(() => tx.get(runIndex, workspaceId, id));
      if (entry === undefined) return;
      const run = JSON.parse(Buffer.from(document).toString('utf8')) as Essentials;
      const createdBy = textOf(run.createdBy);
      const finishedAt = textOf(run.finishedAt);
      if (createdBy !== undefined) tx.mark(userRuns, workspaceId, createdBy, id);
      if (finishedAt !== undefined) tx.mark(endPlaces, workspaceId, placeOf(finishedAt, id));
      const members = { ...(createdBy && { createdBy }), ...(finishedAt && { finishedAt }) };
      tx.put(runIndex, { ...entry, ...members }, workspaceId, id);
    });
}

function textOf(member: unknown): string | undefined {
  return typeof member === 'string' ? member : undefined;
}
