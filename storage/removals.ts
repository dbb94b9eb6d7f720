/**
 * Removes in bounded steps what was deleted. The commit of a deletion takes away what makes the thing visible and notes the
 * removal; the rest, of whatever size, goes step by step afterwards, also after a crash.
 */
import { setImmediate as nextTurn } from 'node:timers/promises';
import { defineRecord } from './codec.ts';
import { SYSTEM } from './keys.ts';
import type { Store, Transaction } from './store.ts';

/** What is being removed. Key: SYSTEM, workspace id, kind, id. */
const removalRecords = defineRecord<null>('removal', 1);

/** Removes a bounded part of what is left of a thing, in one commit. Returns whether nothing was left. */
export type RemovalStep = (workspaceId: string, id: string) => boolean;

export class Removals implements Disposable {
  readonly #store: Store;
  readonly #onFault: (error: unknown) => void;
  readonly #steps = new Map<string, RemovalStep>();
  #isWorking = false;
  #isClosed = false;
  /** False once nothing was found, until something is noted: then no read has to ask the store. */
  #mayBePending = true;
  /** Whether something was noted that the running work may not have seen. */
  #hasNew = false;

  /** `onFault` is called when a step fails; the removal goes on when the server is started again. */
  constructor(store: Store, onFault: (error: unknown) => void) {
    this.#store = store;
    this.#onFault = onFault;
  }

  /** Declares how things of a kind are removed. All kinds are declared before `resume`. */
  define(kind: string, step: RemovalStep): void {
    this.#steps.set(kind, step);
  }

  /** Notes a removal in the commit of the deletion. */
  add(tx: Transaction, kind: string, workspaceId: string, id: string): void {
    tx.put(removalRecords, null, SYSTEM, workspaceId, kind, id);
    this.#mayBePending = true;
    this.#hasNew = true;
    this.resume();
  }

  /** Returns whether something of this thing may be left. */
  isPending(kind: string, workspaceId: string, id: string): boolean {
    return this.#mayBePending && this.#store.get(removalRecords, SYSTEM, workspaceId, kind, id) !== undefined;
  }

  /** Works off what is noted, in the background. */
  resume(): void {
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
      const [next] = [...this.#store.listKeys(removalRecords, SYSTEM, [], 1)];
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

  /** Takes no further step. */
  [Symbol.dispose](): void {
    this.#isClosed = true;
  }
}
