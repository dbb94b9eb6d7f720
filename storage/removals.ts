/**
 * Removes deleted objects in bounded steps. The commit of a deletion removes the records that make
 * the object visible and notes the removal. The rest, of any size, is removed step by step
 * afterwards, even after a crash.
 *
 * Each removal is noted and carried out by the home of its subject: a notebook or a conversation,
 * or the workspace itself.
 */

import { setImmediate as nextTurn } from 'node:timers/promises';
import { invariant } from '#src/base/errors/invariant.ts';
import { defineMark } from './codec.ts';
import { SYSTEM } from './keys.ts';
import type { Store } from './store.ts';
import type { Transaction } from './transaction.ts';

/**
 * Takes the place of a home where a removal concerns the workspace itself. No notebook or
 * conversation has this id.
 */
const WORKSPACE_ITSELF = '*';

/** A thing being removed. Key: SYSTEM, workspace id, notebook or conversation id (or `WORKSPACE_ITSELF`), kind, id. */
const removalRecords = defineMark('removal');

/** A thing to remove: its kind, its key, and the notebook or conversation to which it belongs; undefined means the workspace. */
export interface Removal {
  readonly kind: string;
  readonly workspaceId: string;
  readonly home: string | undefined;
  readonly id: string;
}

/** The kind of the removal of a whole workspace. */
export const WORKSPACE = 'workspace';

/** Returns the removal of a whole workspace. */
export function removalOf(workspaceId: string): Removal {
  return { kind: WORKSPACE, workspaceId, home: undefined, id: workspaceId };
}

/** Removes a bounded part of the remains of an object, in one commit. Returns whether nothing was left. */
export type RemovalStep = (workspaceId: string, id: string) => boolean | Promise<boolean>;

/** Keys that are read in one turn of the event loop. */
const MAX_KEYS = 100;
/** The most removals that are kept in memory. When there are more, they are read from the store. */
const MAX_NOTED = 1000;

export class Removals implements Disposable {
  readonly #store: Store;
  readonly #onFault: (error: unknown) => void;
  readonly #owns: (workspaceId: string, home?: string) => boolean;
  readonly #steps = new Map<string, RemovalStep>();
  #isWorking = false;
  #isClosed = false;
  /**
   * False after a search that found no removals of homes in this worker, until a removal is noted. It saves reads of
   * the store.
   */
  #mayBePending = true;
  /** Removals noted by this process and not begun. */
  #noted: Removal[] = [];
  /**
   * Whether the store has to be read from the start: other workers may have noted removals whose homes are in this
   * worker now.
   */
  #hasToRead = false;
  /** Whether a removal has failed since the store was last read from the start. */
  #hasFailed = false;

  /**
   * `onFault` is called when a step fails. The other removals continue; the failed one is retried when another removal
   * is noted, or when the server is started again. `owns` returns whether a home is in this worker: other workers
   * remove the rest.
   */
  constructor(
    store: Store,
    onFault: (error: unknown) => void,
    owns: (workspaceId: string, home?: string) => boolean = () => true,
  ) {
    this.#store = store;
    this.#onFault = onFault;
    this.#owns = owns;
  }

  /** Declares how things of a kind are removed. All kinds are declared before `resume`. */
  define(kind: string, step: RemovalStep): void {
    this.#steps.set(kind, step);
  }

  /**
   * Notes a removal in the commit of the deletion. The home of the object decides about that
   * commit.
   */
  add(tx: Transaction, removal: Removal): void {
    tx.mark(removalRecords, ...keyOf(removal));
    if (this.#noted.length < MAX_NOTED) this.#noted.push(removal);
    else this.#hasToRead = true;
    this.#begin();
  }

  /** Returns whether remains of this object may be left, whichever worker removes them. */
  isPending(removal: Removal): boolean {
    if (!this.#mayBePending && this.#owns(removal.workspaceId, removal.home)) return false;
    return this.#isNoted(removal);
  }

  /**
   * Works through the removals noted in the store, in the background. To be called again when homes have come from
   * another worker.
   */
  resume(): void {
    this.#hasToRead = true;
    this.#begin();
  }

  #begin(): void {
    this.#mayBePending = true;
    if (this.#isWorking) return;
    this.#isWorking = true;
    this.#work().catch((error: unknown) => {
      this.#isWorking = false;
      this.#hasToRead = true; // the failed removal is tried again once another one is noted
      this.#onFault(error);
    });
  }

  async #work(): Promise<void> {
    while (!this.#isClosed && (this.#noted.length > 0 || this.#hasToRead)) {
      const noted = this.#noted;
      this.#noted = [];
      await this.#committed();
      for (const removal of noted) await this.#tryRemoving(removal);
      if (!this.#hasToRead) continue;
      this.#hasToRead = false;
      this.#hasFailed = false;
      await this.#removeStored();
    }
    this.#isWorking = false;
    if (this.#isClosed) return;
    this.#mayBePending = this.#hasFailed;
    this.#hasToRead = this.#hasFailed; // the next removal that is noted starts the work again
  }

  /** Resolves once the writes of the present turn are on disk. */
  async #committed(): Promise<void> {
    await nextTurn();
    await this.#store.durable();
  }

  /** Goes once through the removals noted in the store. For a home in another worker it reads one key. */
  async #removeStored(): Promise<void> {
    let beyond: string[] | undefined;
    for (let isOver = false; !isOver; ) {
      await this.#committed();
      if (this.#isClosed) return;
      const own: Removal[] = [];
      for (let read = 0; read < MAX_KEYS && own.length === 0 && !isOver; read++) {
        const [key] = [...this.#store.listKeys(removalRecords, SYSTEM, [], 1, beyond)];
        if (key === undefined) isOver = true;
        else {
          const removal = removalAt(key);
          const isOwn = this.#owns(removal.workspaceId, removal.home);
          if (isOwn) own.push(removal);
          beyond = isOwn ? key : key.slice(0, 2);
        }
      }
      for (const removal of own) await this.#tryRemoving(removal);
    }
  }

  /** Reports a failure and does not throw it, so that the removals after this one continue. */
  async #tryRemoving(removal: Removal): Promise<void> {
    try {
      await this.#remove(removal);
    } catch (error) {
      this.#hasFailed = true;
      this.#onFault(error);
    }
  }

  /** Removes, step by step, all remains of an object, unless another worker has become its home. */
  async #remove(removal: Removal): Promise<void> {
    const { workspaceId, home, kind, id } = removal;
    const step = this.#steps.get(kind);
    const goesOn = () => !this.#isClosed && this.#owns(workspaceId, home) && this.#isNoted(removal);
    while (goesOn()) {
      invariant(step !== undefined, 'A kind of removal is declared before it is noted.', kind);
      // The remains of a deleted workspace are all removed by the home of the workspace.
      const isLeft = home !== undefined && this.#isNoted(removalOf(workspaceId));
      const isDone = isLeft || step(workspaceId, id);
      const isOver = typeof isDone === 'boolean' ? isDone : await isDone;
      if (isOver && goesOn()) this.#store.write((tx) => tx.remove(removalRecords, ...keyOf(removal)));
      await this.#committed();
    }
  }

  /** Returns whether the store has the removal. It does not when the deletion that noted it has failed. */
  #isNoted(removal: Removal): boolean {
    return this.#store.has(removalRecords, ...keyOf(removal));
  }

  /** Takes no further step. */
  [Symbol.dispose](): void {
    this.#isClosed = true;
  }
}

function keyOf({ workspaceId, home = WORKSPACE_ITSELF, kind, id }: Removal): [string, ...string[]] {
  return [SYSTEM, workspaceId, home, kind, id];
}

function removalAt([workspaceId = '', home = '', kind = '', id = '']: readonly string[]): Removal {
  return { workspaceId, home: home === WORKSPACE_ITSELF ? undefined : home, kind, id };
}
