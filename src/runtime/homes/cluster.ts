/**
 * The cluster as the parts of a server see it: which objects have their home in this worker, and how to ask the other workers. A
 * server of one process uses `ALONE`.
 */

export interface Cluster {
  /** The number of this worker; 0 in a server of one process. A worker that replaces another one has a new number. */
  readonly worker: number;
  /** How many workers the server should have. */
  readonly size: number;
  /** How many workers serve now. While a worker is being replaced, there are fewer than `size`. */
  readonly living: number;
  /** The name of this process among all processes that have ever written the store; undefined in a server of one process. */
  readonly incarnation: string | undefined;
  /** Returns whether another process with this name lives. */
  livesElsewhere(incarnation: string): boolean;
  /** Whether the primary process, which starts workers and kernels, has sent nothing for two seconds. */
  readonly isPrimarySilent: boolean;
  /**
   * Returns whether this worker makes all decisions about a notebook or conversation (`id`) of the workspace; without
   * `id`, about the workspace itself. `'*'` stands for the server as a whole.
   */
  owns(workspaceId: string, id?: string): boolean;
  /** Calls `listener` when slots have come to this worker from another worker, which may have died at any point of its work. */
  onSlotsTaken(listener: () => void): void;
  /**
   * Asks every other worker. Resolves with the answers of all workers that do not end before they answer; the watchdog kills a
   * worker that hangs. With `withinMs`, slower workers are left out. A worker that starts later is not asked, so it must read the
   * change from the store.
   */
  askOthers(topic: Topic, payload: unknown, withinMs?: number): Promise<readonly unknown[]>;
  /**
   * Makes every other worker act, and waits until each worker has acted or failed. Resolves with true when no worker has failed.
   * A worker that ends meanwhile has not failed, because it has nothing left to act on.
   */
  haveOthersAct(topic: Topic, payload: unknown): Promise<boolean>;
  /**
   * Asks one other worker. Resolves with its answer, or with undefined when the worker has none or
   * ends before it answers.
   */
  ask(worker: number, topic: Topic, payload: unknown): Promise<unknown>;
  /** Calls `listener` when other workers have joined this one, and when they have ended. */
  onWorkersChanged(listener: (change: WorkersChange) => void): void;
  /**
   * Sets the handler that answers the questions of other workers on a topic. Each topic has one handler. When the handler throws,
   * `ask` and `askOthers` get no answer, and `haveOthersAct` resolves with false.
   */
  onAsked(topic: Topic, answer: (payload: unknown) => unknown): void;
}

/** The numbers of workers. */
export interface WorkersChange {
  readonly joined: readonly number[];
  readonly gone: readonly number[];
}

/**
 * Asks every other worker once the writes of this turn are on disk. The responses of this worker wait for the answers.
 */
export type Announce = (topic: Topic, payload: unknown) => void;

/** The questions of workers to each other. */
export type Topic =
  /** Something about tokens, members or workspaces has changed in the store. */
  | 'identity-changed'
  /** A workspace was deleted: remove it from memory, and answer once no further writes for the workspace can follow. */
  | 'workspace-deleted'
  /** Which sets of packages do your kernels use? */
  | 'packages-in-use'
  /** A datasource was replaced or deleted: drop all cached data about it. */
  | 'datasource-gone'
  /** Give back the unused permits of a workspace: for runs, for runs of a user, or for event streams. */
  | 'run-permits'
  | 'user-run-permits'
  | 'stream-permits'
  /** The limits of a workspace have changed: count its use again under the new limits. */
  | 'limits-changed'
  /** Make no more run ids before this time. Answer with the next id, once all runs with smaller ids are on disk. */
  | 'runs-settled'
  /** End no more runs before this time. Answer with this time or a later one, once all earlier ends are on disk. */
  | 'run-ends-settled'
  /** Cancel those of these runs whose sessions have their home in your worker. */
  | 'cancel-runs'
  /** Cancel this call of an MCP tool, if it runs in your worker. */
  | 'cancel-mcp-call'
  /** The keyring file has changed. */
  | 'keyring-changed'
  /** Seal all records whose home is your worker with the newest key: connections of workspaces, and secrets of notebooks. */
  | 'seal-again'
  /** Send the metrics and the state of your worker. */
  | 'metrics'
  | 'server-state'
  | 'server-load'
  | 'log'
  /** Send a page of the actors of a workspace that you have in memory. */
  | 'list-actors'
  /** How many actors of a workspace do you have in memory, of each kind in each state? */
  | 'count-actors'
  /** Report from now on the changes of actors that a client of the asking worker follows. */
  | 'follow-actors'
  /** A report about changes of actors that the receiver follows. */
  | 'actor-reports'
  /** Send the kernels of your sessions in a workspace, with their memory and processor use. */
  | 'list-kernels'
  /** The files of a workspace were counted: use this count instead of counting again. */
  | 'files-counted'
  /** These slots of homes have new events for hooks. */
  | 'hook-events'
  /** Fire the job of this hook, if its home is your worker. */
  | 'fire-by-hook'
  /** Which sessions of a workspace have a kernel? */
  | 'sessions-with-kernels';

/** The cluster of a server that is one process. */
export const ALONE: Cluster = {
  worker: 0,
  size: 1,
  living: 1,
  incarnation: undefined,
  livesElsewhere: () => false,
  isPrimarySilent: false,
  owns: () => true,
  onSlotsTaken: () => undefined,
  askOthers: async () => [],
  haveOthersAct: async () => true,
  ask: async () => undefined,
  onWorkersChanged: () => undefined,
  onAsked: () => undefined,
};
