/** Format 3 → 4: the runs of a session that have ended get an index by how they did. */
import { endedRuns, runIndex } from '../runs.ts';
import type { Store } from '../store.ts';
import { convertAll, workspacesOf } from './convert.ts';

export async function indexEndedRuns(store: Store): Promise<void> {
  for (const workspaceId of workspacesOf(store)) {
    await convertAll(store, runIndex, workspaceId, [], (tx, { id, value: { kind, sessionId, status } }) => {
      if (status !== 'running') tx.put(endedRuns, null, workspaceId, kind, sessionId, status, id);
    });
  }
}
