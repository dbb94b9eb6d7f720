/**
 * Removes in bounded steps what was deleted. The commit of a deletion takes away what makes the thing visible and notes the
 * removal; the rest, of whatever size, goes step by step afterwards, also after a crash.
 */
import { setImmediate as nextTurn } from 'node:timers/promises';
import { defineRecord } from './codec.ts';
import { SYSTEM } from './keys.ts';
import type { Store } from './store.ts';
import type { Transaction } from './transaction.ts';

/** What is being removed. Key: SYSTEM, workspace id, kind, id. */
const removalRecords = defineRecord<null>('removal', 1);

/** Removes a bounded part of what is left of a thing, in one commit. Returns whether nothing was left. */
export type RemovalStep = (workspaceId: string, id: string) => boolean;

export class Removals implements Disposable {
  readonly #store: Store;
  readonly #onFault: (error: unknown) => void;
  readonly #owns: (workspaceId: string) => boolean;
  readonly #steps = new Map<string, RemovalStep>();
  #isWorking = false;
  #isClosed = false;
  /** False once nothing was found in own workspaces, until something is noted: then no read of those has to ask the store. */
  #mayBePending = true;
  /** Whether something was noted that the running work may not have seen. */
  #hasNew = false;

  /**
   * `onFault` is called when a step fails; the removal goes on when the server is started again. Only what is noted of
   * workspaces that `owns` returns true for is removed: others are those of another worker.
   */
  constructor(
    store: Store,
    onFault: (error: unknown) => void,
    owns: (workspaceId: string) => boolean = () => true,
  ) {
    this.#store = store;
    this.#onFault = onFault;
    this.#owns = owns;
  }

  /** Declares how things of a kind are removed. All kinds are declared before `resume`. */
  define(kind: string, step: RemovalStep): void {
    this.#steps.set(kind, step);
  }

  /** Notes a removal in the commit of the deletion. */
  add(tx: Transaction, kind: string, workspaceId: string, id: string): void {
    tx.put(removalRecords, null, SYSTEM, workspaceId, kind, id);
    this.resume();
  }

  /** Returns whether something of this thing may be left. */
  isPending(kind: string, workspaceId: string, id: string): boolean {
    if (!this.#mayBePending && this.#owns(workspaceId)) return false;
    return this.#store.get(removalRecords, SYSTEM, workspaceId, kind, id) !== undefined;
  }

  /** Works off what is noted, in the background. To be called again when workspaces have come from another worker. */
  resume(): void {
    this.#mayBePending = true;
    this.#hasNew = true;
    if (this.#isWorking) return;
    this.#isWorking = true;
    this.#work()
      .catch((error: unknown) => this.#onFault(error))
      .finally(() => {
        this.#isWorking = false;
      });
  }

  async #work(): Promise<void> {
    for (;;) {
      this.#hasNew = false;
      await nextTurn(); // in which what the present turn wrote is committed
      await this.#store.durable();
      if (this.#isClosed) return;
      const next = this.#firstOwn();
      if (next === undefined) {
        if (this.#hasNew) continue; // noted while the last commit was awaited
        this.#mayBePending = false;
        return;
      }
      const [workspaceId = '', kind = '', id = ''] = next;
      const step = this.#steps.get(kind);
      if (step === undefined) throw new Error(`Nothing is declared that removes a ${kind}.`);
      if (step(workspaceId, id)) this.#store.write((tx) => tx.remove(removalRecords, SYSTEM, ...next));
    }
  }

  /** Returns the first removal that is noted of an own workspace. Of any other workspace it reads one key. */
  #firstOwn(): string[] | undefined {
    let beyond: string[] | undefined;
    for (;;) {
      const [next] = [...this.#store.listKeys(removalRecords, SYSTEM, [], 1, beyond)];
      const [workspaceId = ''] = next ?? [];
      if (next === undefined || this.#owns(workspaceId)) return next;
      beyond = [workspaceId];
    }
  }

  /** Takes no further step. */
  [Symbol.dispose](): void {
    this.#isClosed = true;
  }
}
