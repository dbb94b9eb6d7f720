/**
 * Deletes notebooks. The commit of a deletion removes the notebook, its session and its
 * conversation, so that these and their runs can no longer be found. The saved outputs of its
 * cells, its earlier versions and its runs with their assets follow in bounded steps.
 */

import type { StateCheck } from '#src/base/errors/refusals.ts';
import type { WorkspaceId } from '#src/base/ids.ts';
import { cellOutputRecords } from '#storage/records/notebooks.ts';
import { removeSomeVersions } from '../saved/notebook-versions.ts';
import { removeOutput } from '../saved/saved-outputs.ts';
import type { NotebookRequestContext } from './request-context.ts';

/** Outputs that are removed in one commit at most. */
const MAX_OUTPUTS = 200;
/** Versions that are removed in one commit at most. */
const MAX_VERSIONS_AT_ONCE = 20;

/** The kind of the removals. */
export const NOTEBOOK = 'notebook';

export class NotebookDeletion {
  readonly #context: NotebookRequestContext;

  constructor(context: NotebookRequestContext) {
    this.#context = context;
    context.removals.define(NOTEBOOK, (workspaceId, id) => this.#removeSome(workspaceId as WorkspaceId, id));
  }

  /**
   * Deletes a notebook with its runs, outputs and conversation. Throws `not_found`, `session_open`, or the error of
   * `checkState`.
   */
  delete(workspaceId: WorkspaceId, notebookId: string, checkState: StateCheck<string> = () => {}): void {
    const { store, removals, notebooks, sessions, secrets, agents } = this.#context;
    notebooks.checkDeletion(workspaceId, notebookId, checkState);
    const eraseConversation = agents().prepareDeletion(workspaceId, notebookId);
    store.write((tx) => {
      notebooks.erase(tx, workspaceId, notebookId);
      sessions.erase(tx, workspaceId, notebookId);
      secrets.erase(tx, workspaceId, notebookId);
      eraseConversation(tx);
      removals.add(tx, { kind: NOTEBOOK, workspaceId, home: notebookId, id: notebookId });
    });
  }

  #removeSome(workspaceId: WorkspaceId, id: string): boolean {
    const { store, runDeletion } = this.#context;
    const outputs = [...store.listKeys(cellOutputRecords, workspaceId, [id], MAX_OUTPUTS)];
    if (outputs.length === 0)
      return (
        removeSomeVersions(store, workspaceId, id, MAX_VERSIONS_AT_ONCE) &&
        runDeletion.removeRuns('notebook', workspaceId, id)
      );
    store.write((tx) => {
      for (const [notebookId = '', cellId = ''] of outputs) removeOutput(tx, workspaceId, notebookId, cellId);
    });
    return false;
  }
}
