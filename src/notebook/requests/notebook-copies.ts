/**
 * Copies of notebooks for work that must leave the notebook as it is: a copy is made and opened, runs, and is deleted. Its runs are
 * kept. A copy has the cells, variables and secrets of its notebook, and a home that the caller chooses.
 */

import { isStarting, type Opener } from '#machines/notebook-session.ts';
import { AppError, type Failure } from '#src/base/errors/errors.ts';
import type { EnvironmentId, NotebookId, WorkspaceId } from '#src/base/ids.ts';
import type { Metadata } from '#src/contract/wire/shape.ts';
import type { Transaction } from '#storage/transaction.ts';
import type { NotebookDeletion } from './notebook-deletion.ts';
import type { NotebookRequestContext } from './request-context.ts';

/** The metadata key that marks a copy made for one run; its value is the id of the copied notebook. */
const COPY_OF = 'copy-of';

/** A copy to make. */
export interface NewCopy {
  readonly workspaceId: WorkspaceId;
  readonly notebookId: string;
  readonly by: Opener;
  readonly arguments: readonly string[];
  /** The datasources of the copy; undefined means those of the notebook. */
  readonly datasourceSlugs: readonly string[] | undefined;
  readonly metadata: Metadata;
  /** Returns whether the copy may have this id. */
  readonly accepts: (id: string) => boolean;
  /** Notes the copy in the commit that makes it. */
  readonly note: (tx: Transaction, copyId: string) => void;
}

/** A copy to remove. */
export interface OpenCopy {
  readonly workspaceId: WorkspaceId;
  readonly copyId: string;
  /** Null when no session was opened. */
  readonly environmentId: string | null;
  /** The user who closes the session. */
  readonly by: string;
}

export class NotebookCopies {
  readonly #context: NotebookRequestContext;
  readonly #deletion: NotebookDeletion;

  constructor(context: NotebookRequestContext, deletion: NotebookDeletion) {
    this.#context = context;
    this.#deletion = deletion;
  }

  /** Resolves with the id of a copy. Rejects with `not_found`, and with `UnsealError` when a secret cannot be opened. */
  async make({
    workspaceId,
    notebookId,
    by,
    datasourceSlugs,
    metadata,
    accepts,
    note,
  }: NewCopy): Promise<string> {
    const { notebooks, secrets } = this.#context;
    const { serialization, variables, ...settings } = await notebooks.readInSlices(workspaceId, notebookId);
    const fields = {
      serialization,
      variables,
      datasourceSlugs: datasourceSlugs ?? settings.datasourceSlugs,
      metadata: { ...metadata, [COPY_OF]: notebookId },
    };
    const also = (tx: Transaction, id: string) => {
      secrets.copy(tx, workspaceId, notebookId, id);
      note(tx, id);
    };
    const { document } = await notebooks.create(workspaceId, fields, by.userId, also, accepts);
    return document.id;
  }

  /**
   * Opens a session on a copy, in an environment of its own, which `note` gets in the same commit. People come first: rejects with
   * `at_capacity` and `quota_exceeded` also when a limit has just refused a person.
   */
  async open(
    { workspaceId, by, arguments: words, metadata }: NewCopy,
    copyId: string,
    note: (environmentId: string) => void,
  ): Promise<void> {
    const { environments, sessions, store } = this.#context;
    await sessions.prepare(workspaceId, copyId, true);
    await new Promise<void>((resolve, reject) => {
      store.decide(() => {
        try {
          sessions.room.admitAfterPeople(workspaceId, by.userId);
          const { environmentId } = environments.create(workspaceId);
          try {
            sessions.open(workspaceId, {
              notebookId: copyId as NotebookId,
              environmentId: environmentId as EnvironmentId,
              mode: 'run',
              arguments: words,
              by,
              lifetime: { ttlS: null, idleTimeoutS: null },
              metadata,
            });
          } catch (error) {
            environments.close(workspaceId, environmentId);
            throw error;
          }
          note(environmentId);
          resolve();
        } catch (error) {
          reject(error);
        }
      });
    });
  }

  /**
   * Resolves once the session of a copy can take work, with null, or with the reason why it never will. The start of a kernel has
   * a deadline of its own.
   */
  async ready(workspaceId: WorkspaceId, copyId: string): Promise<Failure | null> {
    const { actors } = this.#context;
    const session = { workspaceId, id: copyId };
    const outcome = (): Failure | null | undefined => {
      const snapshot = actors.peek(session)?.snapshot;
      if (snapshot === undefined || snapshot.matches('closed') || snapshot.matches('closing')) return CLOSED;
      if (snapshot.matches('failed')) return snapshot.context.failure ?? CLOSED;
      if (snapshot.matches('dormant')) return STOPPED;
      return isStarting(snapshot) ? undefined : null;
    };
    const known = outcome();
    if (known !== undefined) return known;
    return new Promise((resolve) => {
      const stop = actors.watch(session, () => {
        const found = outcome();
        if (found === undefined) return;
        stop();
        resolve(found);
      });
    });
  }

  /**
   * Closes and deletes a copy with its session and environment, and calls `also` in the commit of the deletion. Runs of the copy are
   * kept. A part that is already gone is left out.
   */
  async remove(
    { workspaceId, copyId, environmentId, by }: OpenCopy,
    also: (tx: Transaction) => void,
  ): Promise<void> {
    const { environments, sessions, store } = this.#context;
    await sessions.close(workspaceId, copyId, by).catch(unlessGone);
    if (environmentId !== null)
      await new Promise<void>((resolve) => {
        store.decide(() => {
          try {
            environments.close(workspaceId, environmentId);
          } catch (error) {
            unlessGone(error);
          } finally {
            resolve();
          }
        });
      });
    this.#deletion.deleteCopy(workspaceId, copyId, also);
  }
}

/** Throws the error again, unless it says that the object is already closed or deleted. */
function unlessGone(error: unknown): void {
  if (!(error instanceof AppError)) throw error;
}

const STOPPED: Failure = {
  code: 'server_stopped',
  message: 'The server was stopped while the notebook was opened.',
};
const CLOSED: Failure = {
  code: 'session_closed',
  message: 'The session was closed before the run began.',
};
