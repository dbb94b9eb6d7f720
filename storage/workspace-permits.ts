/**
 * Permits for objects of which a workspace may have a limited number, such as runs in progress, in a server of
 * several workers. A worker has some of the permits of a workspace and issues them without asking other workers. When
 * they are all in use it takes more in a shared turn, and when none are left it first collects unused permits from
 * the other workers. So the limit is never exceeded, and an object far below the limit costs only an increment in
 * memory. Lowering a limit ends nothing: existing objects count, and new ones begin only when there are fewer.
 *
 * The number of permits of each worker is stored, so that the permits of a dead worker become
 * available again. A worker writes its own record; the record of a dead worker is removed in the
 * next shared turn.
 */

import { unawaited } from '#src/base/async/unawaited.ts';
import { invariant } from '#src/base/errors/invariant.ts';
import { defineRecord } from './codec.ts';
import { SYSTEM } from './keys.ts';
import type { Store } from './store.ts';

/**
 * How many permits of a workspace a worker has. Key: SYSTEM, purpose of the permits, workspace id, the worker's name.
 */
const grantedPermits = defineRecord<number>('granted-permits', 1);

/**
 * Counts as one object until it is disposed of. Dispose of it when the object has begun and is counted itself, or
 * when it will never begin.
 */
export type Permit = Disposable;

export interface WorkspacePermitsOptions {
  readonly store: Store;
  /** The purpose of the permits, as their key. */
  readonly kind: string;
  /** Returns how many of the objects a workspace may have now; 0 means any number. */
  readonly limit: (workspaceId: string) => number;
  readonly workers: number;
  /** The name of this worker among all that write the store. */
  readonly own: string;
  readonly livesElsewhere: (worker: string) => boolean;
  /** Returns how many of the objects the workspace has in this worker. */
  readonly inUse: (workspaceId: string) => number;
  /** Resolves once every other worker has called `giveBack`. */
  readonly collect: (workspaceId: string) => Promise<unknown>;
  /** Returns the error with which a request is refused. */
  readonly refusal: (limit: number) => Error;
}

interface Waiting {
  readonly resolve: (permit: Permit) => void;
  readonly reject: (error: Error) => void;
  /**
   * Whether the other workers have been asked to give back unused permits since this worker began
   * to wait.
   */
  isAskedFor: boolean;
}

/** This worker's account of one workspace. */
interface Account {
  /** The permits that it has. */
  granted: number;
  /** Permits for objects that have not begun yet. */
  reserved: number;
  readonly waiting: Waiting[];
  isAsking: boolean;
  /** The limit under which this worker took its permits; undefined after the limit has changed. */
  heldUnder: number | undefined;
}

/** The permits of a process, which may be the only one. */
export type Permits = Pick<WorkspacePermits, 'hasRoom' | 'take'>;

export class WorkspacePermits {
  readonly #options: WorkspacePermitsOptions;
  readonly #accounts = new Map<string, Account>();
  #hasRemovedOld = false;

  constructor(options: WorkspacePermitsOptions) {
    this.#options = options;
  }

  /** Returns whether an object may begin in this turn: without a limit, or with a permit that this worker has to spare. */
  hasRoom(workspaceId: string): boolean {
    const limit = this.#options.limit(workspaceId);
    if (limit === 0) return true;
    const account = this.#accounts.get(workspaceId);
    if (account === undefined || account.heldUnder !== limit || account.waiting.length > 0) return false;
    return this.#spare(workspaceId, account) > 0;
  }

  /** Returns a permit, in a promise when other workers have to be asked. Throws and rejects with the refusal. */
  take(workspaceId: string): Permit | Promise<Permit> {
    const account = this.#account(workspaceId);
    if (this.hasRoom(workspaceId)) return this.#reserve(workspaceId, account);
    return new Promise((resolve, reject) => {
      account.waiting.push({ resolve, reject, isAskedFor: false });
      if (!account.isAsking)
        unawaited(this.#ask(workspaceId, account), 'workspace-permits: the question for permits');
    });
  }

  /** Gives up the permits of a workspace that are not in use. Resolves once other workers can take them. */
  async giveBack(workspaceId: string): Promise<void> {
    const account = this.#accounts.get(workspaceId);
    if (account !== undefined) {
      const spare = this.#spare(workspaceId, account);
      if (spare > 0) this.#keep(workspaceId, account, account.granted - spare);
    }
    await this.#options.store.durable();
  }

  /**
   * Takes a permit for each existing object, even beyond the limit, and gives back the others. Objects that began
   * under another limit count. Resolves once other workers can see that.
   */
  async settle(workspaceId: string): Promise<void> {
    const account = this.#account(workspaceId);
    account.heldUnder = undefined;
    this.#keep(workspaceId, account, this.#used(workspaceId, account));
    this.#drop(workspaceId, account);
    await this.#options.store.durable();
  }

  /** Returns the workspaces that this worker has an account of. */
  get known(): string[] {
    return [...this.#accounts.keys()];
  }

  /** Gives up all permits of a deleted workspace, in which nothing will begin any more. */
  forget(workspaceId: string): void {
    const account = this.#accounts.get(workspaceId);
    if (account === undefined) return;
    this.#keep(workspaceId, account, 0);
    this.#accounts.delete(workspaceId);
  }

  #account(workspaceId: string): Account {
    const known = this.#accounts.get(workspaceId);
    if (known !== undefined) return known;
    const account: Account = {
      granted: 0,
      reserved: 0,
      waiting: [],
      isAsking: false,
      heldUnder: undefined,
    };
    this.#accounts.set(workspaceId, account);
    return account;
  }

  #spare(workspaceId: string, account: Account): number {
    return account.granted - this.#used(workspaceId, account);
  }

  #used(workspaceId: string, { reserved }: Account): number {
    return reserved + this.#options.inUse(workspaceId);
  }

  #reserve(workspaceId: string, account: Account): Permit {
    account.reserved++;
    let isReserved = true;
    return {
      [Symbol.dispose]: () => {
        invariant(isReserved, 'A permit is given back once.', workspaceId);
        isReserved = false;
        account.reserved--;
        this.#drop(workspaceId, account);
      },
    };
  }

  /** Forgets an empty account; otherwise each workspace without a limit would leave one. */
  #drop(workspaceId: string, { granted, reserved, waiting, isAsking }: Account): void {
    if (granted === 0 && reserved === 0 && waiting.length === 0 && !isAsking)
      this.#accounts.delete(workspaceId);
  }

  /** Serves the waiting callers, and those that arrive during this. Never rejects. */
  async #ask(workspaceId: string, account: Account): Promise<void> {
    const { waiting } = account;
    account.isAsking = true;
    try {
      while (waiting.length > 0) {
        if (await this.#grow(workspaceId, account)) continue;
        for (const one of waiting) one.isAskedFor = true;
        await this.#options.collect(workspaceId);
        if (await this.#grow(workspaceId, account)) continue;
        const limit = this.#options.limit(workspaceId);
        while (waiting[0]?.isAskedFor === true) waiting.shift()?.reject(this.#options.refusal(limit));
      }
    } catch (error) {
      for (const { reject } of waiting.splice(0)) reject(error as Error);
    } finally {
      account.isAsking = false;
      this.#drop(workspaceId, account);
    }
  }

  /**
   * Takes permits that no worker has, and gives them to the waiting callers. Resolves with whether there were enough.
   */
  #grow(workspaceId: string, account: Account): Promise<boolean> {
    return new Promise((resolve) => {
      this.#options.store.decide(() => {
        this.#removeOld();
        const limit = this.#options.limit(workspaceId);
        const reserve = () => account.waiting.shift()?.resolve(this.#reserve(workspaceId, account));
        if (limit === 0) {
          while (account.waiting.length > 0) reserve();
          resolve(true);
          return;
        }
        // There may be more permits than the limit allows, if they were taken under a higher limit.
        if (account.heldUnder !== limit && this.#spare(workspaceId, account) > 0)
          this.#keep(workspaceId, account, this.#used(workspaceId, account));
        const free = this.#free(workspaceId, limit) - account.granted;
        const wanted = account.waiting.length - this.#spare(workspaceId, account);
        const taken = Math.min(free, Math.max(wanted, this.#block(free, limit)));
        if (taken > 0) this.#keep(workspaceId, account, account.granted + taken);
        account.heldUnder = free >= 0 ? limit : undefined;
        for (let spare = this.#spare(workspaceId, account); spare > 0; spare--) reserve();
        resolve(account.waiting.length === 0);
      });
    });
  }

  /**
   * Returns how many permits are taken ahead: fewer when fewer are left, and none once half of them
   * are taken.
   */
  #block(free: number, limit: number): number {
    const { workers } = this.#options;
    return free > limit / 2 ? Math.floor(free / (2 * workers)) : 0;
  }

  /** Returns how many permits the other workers do not have, in a shared turn. Removes the records of dead workers. */
  #free(workspaceId: string, limit: number): number {
    const { store, kind, own, livesElsewhere } = this.#options;
    let free = limit;
    for (const { id, value } of store.list(grantedPermits, SYSTEM, [kind, workspaceId], ALL)) {
      if (id === own) continue;
      if (livesElsewhere(id)) free -= value;
      else store.write((tx) => tx.remove(grantedPermits, SYSTEM, kind, workspaceId, id));
    }
    return free;
  }

  /**
   * Removes records of workers that died before this one began, because nobody may ask for permits
   * of their workspaces again.
   */
  #removeOld(): void {
    if (this.#hasRemovedOld) return;
    this.#hasRemovedOld = true;
    const { store, kind, own, livesElsewhere } = this.#options;
    const all = [...store.listKeys(grantedPermits, SYSTEM, [kind], MAX_OLD)];
    store.write((tx) => {
      for (const [, workspaceId = '', worker = ''] of all)
        if (worker !== own && !livesElsewhere(worker))
          tx.remove(grantedPermits, SYSTEM, kind, workspaceId, worker);
    });
  }

  #keep(workspaceId: string, account: Account, granted: number): void {
    const { store, kind, own } = this.#options;
    account.granted = granted;
    store.write((tx) => {
      if (granted === 0) tx.remove(grantedPermits, SYSTEM, kind, workspaceId, own);
      else tx.put(grantedPermits, granted, SYSTEM, kind, workspaceId, own);
    });
  }
}

/** How many records are examined when records of dead workers are removed. */
const MAX_OLD = 10_000;
const ALL = { limit: Number.POSITIVE_INFINITY };

/** Returns the subject of permits for one user of a workspace. No id contains a space. */
export function permitSubject(workspaceId: string, userId: string): string {
  return `${workspaceId} ${userId}`;
}

/** Returns workspace and user of a subject; the user is undefined when it is a workspace. */
export function subjectParts(subject: string): [workspaceId: string, userId?: string] {
  const [workspaceId = '', userId] = subject.split(' ');
  return userId === undefined ? [workspaceId] : [workspaceId, userId];
}
