/** The interface between the app and the process that opens it. */

import type { Config } from '#src/base/config/config.ts';
import type { RootLog } from '#src/base/log/log.ts';
import type { Server } from '#src/http/server.ts';
import type { Bootstrapped } from '#src/people/auth/bootstrap.ts';
import type { ClusterMember } from './join-cluster.ts';
import type { Prerequisites } from './prerequisites.ts';

export interface AppOptions {
  readonly config: Config;
  readonly log: RootLog;
  /** The app takes ownership: it closes them when it is closed, and when it cannot be opened. */
  readonly prerequisites: Prerequisites;
  /** Called when a commit failed: memory is ahead of the disk, and the process has to end. */
  readonly onFatal: (error: Error) => void;
  /** This worker's membership in the cluster; absent in a server of one process. */
  readonly member?: ClusterMember | undefined;
  /** The path of a unix socket, on which the app listens in place of the port of the settings. */
  readonly socketPath?: string;
}

export interface App extends AsyncDisposable {
  readonly server: Server;
  readonly url: string;
  readonly bootstrapped: Bootstrapped;
  /** Resolves when kernels can be started; rejects when this Python cannot run them. */
  readonly kernelsReady: Promise<{ readonly confinement: string }>;
  /** Returns how many requests have come so far. */
  readonly requestCount: () => number;
  /** Returns the load that a drain has to end. */
  readonly load: () => AppLoad;
  /**
   * Notes that another worker takes the place of this one. The server then does not stop with the app: nothing says so, and nobody is
   * given time to notice it.
   */
  readonly retire: () => void;
  /**
   * Returns a promise that resolves once all decisions are on disk, so that ending then loses nothing; undefined when all are on
   * disk already.
   */
  readonly stored: () => Promise<void> | undefined;
}

export interface AppLoad {
  /** Notebook sessions with a kernel. */
  readonly sessions: number;
  /** Runs in progress, prompts of agents included. */
  readonly runs: number;
  /** Open event streams. */
  readonly streams: number;
}
