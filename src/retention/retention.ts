/** Deletes data older than the settings allow: once an hour, workspace by workspace, a small commit in each turn. */
import { setImmediate as nextTurn } from 'node:timers/promises';
import type { AuditTrail } from '#src/audit/audit-trail.ts';
import type { Config } from '#src/config.ts';
import type { WorkspaceId } from '#src/core/ids.ts';
import { SYSTEM } from '#storage/keys.ts';
import type { Store } from '#storage/store.ts';
import type { OutputsCursor, RunRetention } from './run-retention.ts';
import type { VersionRetention } from './version-retention.ts';

const DAY_MS = 86_400_000;
const INTERVAL_MS = 3_600_000;

export interface RetentionOptions {
  readonly settings: Pick<Config, 'keepRunsDays' | 'keepOutputsDays' | 'keepVersionsDays' | 'keepAuditDays'>;
  readonly store: Store;
  readonly runs: RunRetention;
  readonly versions: VersionRetention;
  readonly audit: AuditTrail;
  /**
   * Returns whether this worker makes the decisions for the workspace itself, such as those about
   * entries of its audit.
   */
  readonly owns: (workspaceId: string) => boolean;
  /** Returns whether the workspace was deleted. Only its home removes its remains. */
  readonly isDeleted: (workspaceId: string) => boolean;
  /** Called when something cannot be deleted. The sweep continues with everything else, and the next sweep tries again. */
  readonly onFault: (error: unknown) => void;
  /** Returns milliseconds since 1970. */
  readonly now?: () => number;
}

export class Retention implements Disposable {
  readonly #options: RetentionOptions;
  #timer: NodeJS.Timeout | undefined;
  #isSweeping = false;
  #isClosed = false;

  constructor(options: RetentionOptions) {
    this.#options = options;
  }

  /**
   * Sweeps now and once an hour from now on, if anything is to be deleted at all. To be called again when workspaces have
   * come from another worker.
   */
  start(): void {
    const { keepRunsDays, keepOutputsDays, keepVersionsDays, keepAuditDays } = this.#options.settings;
    const isEmpty = [keepRunsDays, keepOutputsDays, keepVersionsDays, keepAuditDays].every(
      (days) => days === 0,
    );
    if (this.#isClosed || isEmpty) return;
    const sweep = () => void this.sweep().catch(this.#options.onFault);
    clearInterval(this.#timer);
    this.#timer = setInterval(sweep, INTERVAL_MS).unref();
    sweep();
  }

  /** Deletes all that is too old now. Resolves at once when a sweep is under way. */
  async sweep(): Promise<void> {
    if (this.#isSweeping) return;
    this.#isSweeping = true;
    try {
      let partition: string | undefined;
      for (;;) {
        partition = this.#options.store.nextPartition(partition);
        if (partition === undefined || this.#isClosed) return;
        if (partition !== SYSTEM) await this.#sweepWorkspace(partition as WorkspaceId);
        await nextTurn();
      }
    } finally {
      this.#isSweeping = false;
    }
  }

  async #sweepWorkspace(workspaceId: WorkspaceId): Promise<void> {
    const { settings, runs, versions, audit, owns } = this.#options;
    const { keepRunsDays, keepOutputsDays, keepVersionsDays, keepAuditDays } = settings;
    if (keepRunsDays > 0) {
      let after: string | undefined;
      await this.#repeat(workspaceId, () => {
        after = runs.deleteRuns(workspaceId, this.#before(keepRunsDays), after);
        return after !== undefined;
      });
    }
    if (keepOutputsDays > 0) {
      let cursor: OutputsCursor | undefined;
      await this.#repeat(workspaceId, () => {
        cursor = runs.deleteOutputs(workspaceId, this.#before(keepOutputsDays), cursor);
        return cursor !== undefined;
      });
    }
    if (keepVersionsDays > 0) {
      let after: string | undefined;
      await this.#repeat(workspaceId, () => {
        after = versions.deleteBefore(workspaceId, this.#before(keepVersionsDays), after);
        return after !== undefined;
      });
    }
    if (keepAuditDays > 0) {
      const before = this.#before(keepAuditDays);
      await this.#repeat(workspaceId, () => owns(workspaceId) && audit.deleteBefore(workspaceId, before));
    }
  }

  /**
   * Takes one step in each turn until there is nothing left to do, the workspace is deleted, or a step fails. A failure is reported
   * and not thrown, so that the sweep continues with everything else.
   */
  async #repeat(workspaceId: WorkspaceId, step: () => boolean): Promise<void> {
    try {
      while (!this.#isClosed && !this.#options.isDeleted(workspaceId) && step()) {
        await nextTurn();
        await this.#options.store.durable();
      }
    } catch (error) {
      this.#options.onFault(error);
    }
  }

  #before(days: number): number {
    const { now = Date.now } = this.#options;
    return now() - days * DAY_MS;
  }

  /** Takes no further step. */
  [Symbol.dispose](): void {
    clearInterval(this.#timer);
    this.#isClosed = true;
  }
}
