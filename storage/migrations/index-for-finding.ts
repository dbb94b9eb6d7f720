/**
 * Format 1 → 2: the lists of a workspace's runs, notebook sessions and environments get their indexes. The part of a
 * notebook that lists show is stored apart from its code, and its title in the notebook itself. This file declares
 * the records of format 1.
 */

import { timeText } from '#src/base/ids.ts';
import { defineRecord } from '../codec.ts';
import { unlessDamaged } from '../damaged.ts';
import { actorSnapshots } from '../records/actor-snapshots.ts';
import { notebookRecords, notebookSummaries } from '../records/notebooks.ts';
import { environmentRuns, runIndex, runRecords, statusRuns } from '../records/runs.ts';
import { openEnvironments, openSessionPlaces, sessionPlaces } from '../records/sessions.ts';
import type { Store } from '../store.ts';
import type { Transaction } from '../transaction.ts';
import { type Pass, passOver, workspacesOf } from './conversion.ts';

const oldNotebooks = defineRecord<{ updatedAt: string; document: Uint8Array }>('notebook', 1);

export function* indexForFinding(store: Store): Generator<Pass<unknown>> {
  for (const workspaceId of workspacesOf(store)) {
    yield passOver(actorSnapshots, workspaceId, ['environment'], (tx, value, [, id = '']) => {
      const isClosed = value.value === 'closed';
      if (!isClosed) tx.mark(openEnvironments, workspaceId, id);
    });
    yield passOver(actorSnapshots, workspaceId, ['notebook-session'], (tx, value, [, id = '']) => {
      const { openedAt } = memberOf(value.context);
      if (typeof openedAt !== 'string') return;
      const place = timeText(Date.parse(openedAt)) + id;
      tx.mark(sessionPlaces, workspaceId, place);
      if (value.value !== 'closed') tx.mark(openSessionPlaces, workspaceId, place);
    });
    yield passOver(runRecords, workspaceId, [], (tx, value, [id = '']) => {
      const { sessionId, status, kind = 'notebook' } = value;
      const createdAt = String(jsonOf(value.document).createdAt);
      const environmentId = environmentOf(tx, workspaceId, kind, sessionId, createdAt);
      tx.put(runIndex, { kind, sessionId, environmentId, status, createdAt }, workspaceId, id);
      tx.mark(statusRuns, workspaceId, status, id);
      if (environmentId !== null) tx.mark(environmentRuns, workspaceId, environmentId, id);
    });
    yield passOver(oldNotebooks, workspaceId, [], (tx, { updatedAt, document }, [id = '']) => {
      const notebook = jsonOf(document);
      const serialization = memberOf(notebook.serialization);
      const { app_title: appTitle } = memberOf(memberOf(serialization.app).options);
      const title = typeof appTitle === 'string' ? appTitle : null;
      const { datasourceSlugs, createdAt } = notebook;
      const cellCount = Array.isArray(serialization.cells) ? serialization.cells.length : 0;
      const summary = { id, title, cellCount, datasourceSlugs, createdAt, updatedAt };
      tx.put(notebookSummaries, { title, summary: bytesOf(summary) }, workspaceId, id);
      tx.put(notebookRecords, { updatedAt, document: bytesOf({ ...notebook, title }) }, workspaceId, id);
    });
  }
}

/** Returns the environment of a run: its session's environment, if the session was opened before the run. */
function environmentOf(
  tx: Transaction,
  workspaceId: string,
  kind: 'notebook' | 'agent',
  sessionId: string,
  createdAt: string,
): string | null {
  const actorKind = kind === 'agent' ? 'agent-session' : 'notebook-session';
  const session = unlessDamaged(() => tx.get(actorSnapshots, workspaceId, actorKind, sessionId));
  const { openedAt, environmentId } = memberOf(session?.context);
  if (typeof openedAt !== 'string' || typeof environmentId !== 'string' || openedAt > createdAt) return null;
  return environmentId;
}

type Members = Readonly<Record<string, unknown>>;

function memberOf(value: unknown): Members {
  return typeof value === 'object' && value !== null ? { ...value } : {};
}

function jsonOf(bytes: Uint8Array): Members {
  return memberOf(JSON.parse(Buffer.from(bytes).toString('utf8')));
}

function bytesOf(value: unknown): Buffer {
  return Buffer.from(JSON.stringify(value));
}
