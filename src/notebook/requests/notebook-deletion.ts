/**
 * Deletes notebooks. The commit of a deletion removes the notebook, its session and its
 * conversation, so that these and their runs can no longer be found. The saved outputs of its
 * cells, its earlier versions and its runs with their assets follow in bounded steps.
 */

import type { StateCheck } from '#src/base/errors/refusals.ts';
import type { WorkspaceId } from '#src/base/ids.ts';
import { cellOutputRecords } from '#storage/records/notebooks.ts';
import type { Transaction } from '#storage/transaction.ts';
import { removeSomeVersions } from '../saved/notebook-versions.ts';
import { removeOutput } from '../saved/saved-outputs.ts';
import type { NotebookRequestContext } from './request-context.ts';

/** Outputs that are removed in one commit at most. */
const MAX_OUTPUTS = 200;
/** Versions that are removed in one commit at most. */
const MAX_VERSIONS_AT_ONCE = 20;

/** The kind of the removals. */
export const NOTEBOOK = 'notebook';
/** The kind of the removals of copies, whose runs are kept. */
const COPY = 'notebook-copy';

export class NotebookDeletion {
  readonly #context: NotebookRequestContext;

  constructor(context: NotebookRequestContext) {
    this.#context = context;
    const { removals, runDeletion } = context;
    removals.define(
      NOTEBOOK,
      (workspaceId, id) =>
        this.#removeSome(workspaceId as WorkspaceId, id) &&
        runDeletion.removeRuns('notebook', workspaceId as WorkspaceId, id),
    );
    removals.define(COPY, (workspaceId, id) => this.#removeSome(workspaceId as WorkspaceId, id));
  }

  /**
   * Deletes a notebook with its runs, outputs and conversation. Throws `not_found`, `session_open`, or the error of
   * `checkState`.
   */
  delete(workspaceId: WorkspaceId, notebookId: string, checkState: StateCheck<string> = () => {}): void {
    this.#context.notebooks.checkDeletion(workspaceId, notebookId, checkState);
    this.#erase(workspaceId, notebookId, NOTEBOOK);
  }

  /**
   * Deletes a copy of a notebook, which was made for runs that are kept, and calls `also` in the same commit. Throws `session_open`.
   * Calls only `also` when the copy is already deleted.
   */
  deleteCopy(workspaceId: WorkspaceId, copyId: string, also: (tx: Transaction) => void): void {
    const { store, notebooks } = this.#context;
    if (notebooks.exists(workspaceId, copyId)) {
      notebooks.checkDeletion(workspaceId, copyId, () => {});
      this.#erase(workspaceId, copyId, COPY);
    }
    store.write(also);
  }

  #erase(workspaceId: WorkspaceId, notebookId: string, kind: typeof NOTEBOOK | typeof COPY): void {
    const { store, removals, notebooks, sessions, secrets, agents } = this.#context;
    const eraseConversation = agents().prepareDeletion(workspaceId, notebookId);
    store.write((tx) => {
      notebooks.erase(tx, workspaceId, notebookId);
      sessions.erase(tx, workspaceId, notebookId);
      secrets.erase(tx, workspaceId, notebookId);
      eraseConversation(tx);
      removals.add(tx, { kind, workspaceId, home: notebookId, id: notebookId });
    });
  }

  #removeSome(workspaceId: WorkspaceId, id: string): boolean {
    const { store } = this.#context;
    const outputs = [...store.listKeys(cellOutputRecords, workspaceId, [id], MAX_OUTPUTS)];
    if (outputs.length === 0) return removeSomeVersions(store, workspaceId, id, MAX_VERSIONS_AT_ONCE);
    store.write((tx) => {
      for (const [notebookId = '', cellId = ''] of outputs) removeOutput(tx, workspaceId, notebookId, cellId);
    });
    return false;
  }
}
