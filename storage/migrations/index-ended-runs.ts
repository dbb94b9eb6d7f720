/** Format 3 → 4: the ended runs of a session get an index by status. */
import { endedRuns, runIndex } from '../records/runs.ts';
import type { Store } from '../store.ts';
import { type Pass, passOver, workspacesOf } from './conversion.ts';

export function* indexEndedRuns(store: Store): Generator<Pass<unknown>> {
  for (const workspaceId of workspacesOf(store))
    yield passOver(runIndex, workspaceId, [], (tx, { kind, sessionId, status }, [id = '']) => {
      if (status !== 'running') tx.mark(endedRuns, workspaceId, kind, sessionId, status, id);
    });
}
