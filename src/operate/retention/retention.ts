/** Deletes data older than the settings allow: once an hour, workspace by workspace, a small commit in each turn. */

import { setImmediate as nextTurn } from 'node:timers/promises';
import { unawaited } from '#src/base/async/unawaited.ts';
import type { WorkspaceId } from '#src/base/ids.ts';
import type { OperatorWarning } from '#src/base/log/operator-warning.ts';
import type { AuditTrail } from '#src/people/audit/audit-trail.ts';
import type { PlaneContext } from '#src/runtime/sessions/plane-context.ts';
import { SYSTEM } from '#storage/keys.ts';
import { removalOf } from '#storage/removals.ts';
import type { DeliveriesCursor, DeliveryRetention } from './delivery-retention.ts';
import type { RetentionClock } from './retention-clock.ts';
import type { OutputsCursor, RunRetention } from './run-retention.ts';
import type { VersionRetention } from './version-retention.ts';

const DAY_MS = 86_400_000;
const INTERVAL_MS = 3_600_000;
const CLOCK_AHEAD =
  'The clock of this machine is more than 48 hours past the newest record and the last deletion of old data, so nothing is deleted. ' +
  'Set the clock if it is wrong. If the clock is right, run `troupe retention confirm`; after 48 hours with this clock the server trusts it anyway.';

export interface RetentionOptions {
  readonly runs: RunRetention;
  readonly versions: VersionRetention;
  readonly deliveries: DeliveryRetention;
  readonly audit: AuditTrail;
  /** Decides whether the clock can be trusted with deletions. */
  readonly clock: Pick<RetentionClock, 'check' | 'isHeld' | 'confirm'>;
  /** Returns milliseconds since 1970. */
  readonly now?: () => number;
}

export class Retention implements Disposable {
  readonly #context: PlaneContext;
  readonly #options: RetentionOptions;
  #timer: NodeJS.Timeout | undefined;
  #isSweeping = false;
  #isClosed = false;

  constructor(context: PlaneContext, options: RetentionOptions) {
    this.#context = context;
    this.#options = options;
  }

  /**
   * Sweeps now and once an hour from now on, if anything is to be deleted at all. To be called again when workspaces have
   * come from another worker.
   */
  start(): void {
    if (this.#isClosed || this.#isEmpty) return;
    const sweep = () =>
      unawaited(
        this.sweep().catch((error) => this.#report(error)),
        'retention: the sweep',
      );
    clearInterval(this.#timer);
    this.#timer = setInterval(sweep, INTERVAL_MS).unref();
    sweep();
  }

  /** Returns a warning for operators while nothing is deleted because the clock seems to be ahead. */
  get warnings(): readonly OperatorWarning[] {
    if (this.#isEmpty || !this.#options.clock.isHeld) return [];
    return [{ kind: 'clock_ahead', text: CLOCK_AHEAD }];
  }

  /** Trusts the clock from now on, and begins a sweep. Resolves once the decision is on disk. */
  async confirmClock(): Promise<void> {
    await this.#options.clock.confirm(this.#now());
    this.start();
  }

  /** Whether the settings delete nothing. */
  get #isEmpty(): boolean {
    const { keepRunsDays, keepOutputsDays, keepVersionsDays, keepDeliveriesDays, keepAuditDays } =
      this.#context.config;
    return [keepRunsDays, keepOutputsDays, keepVersionsDays, keepDeliveriesDays, keepAuditDays].every(
      (days) => days === 0,
    );
  }

  /**
   * Deletes everything that is too old now, unless the clock cannot be trusted. Resolves at once when a sweep is
   * under way. The whole sweep uses one time, because the clock may be changed meanwhile.
   */
  async sweep(): Promise<void> {
    if (this.#isSweeping) return;
    this.#isSweeping = true;
    try {
      const now = this.#now();
      if (!(await this.#options.clock.check(now))) return;
      let partition: string | undefined;
      for (;;) {
        partition = this.#context.store.nextPartition(partition);
        if (partition === undefined || this.#isClosed) return;
        if (partition !== SYSTEM) await this.#sweepWorkspace(partition as WorkspaceId, now);
        await nextTurn();
      }
    } finally {
      this.#isSweeping = false;
    }
  }

  async #sweepWorkspace(workspaceId: WorkspaceId, now: number): Promise<void> {
    const before = (days: number) => now - days * DAY_MS;
    const { runs, versions, deliveries, audit } = this.#options;
    const { config, cluster } = this.#context;
    const { keepRunsDays, keepOutputsDays, keepVersionsDays, keepDeliveriesDays, keepAuditDays } = config;
    if (keepRunsDays > 0) {
      let after: string | undefined;
      await this.#repeat(workspaceId, () => {
        after = runs.deleteRuns(workspaceId, before(keepRunsDays), after);
        return after !== undefined;
      });
    }
    if (keepOutputsDays > 0) {
      let cursor: OutputsCursor | undefined;
      await this.#repeat(workspaceId, () => {
        cursor = runs.deleteOutputs(workspaceId, before(keepOutputsDays), cursor);
        return cursor !== undefined;
      });
    }
    if (keepVersionsDays > 0) {
      let after: string | undefined;
      await this.#repeat(workspaceId, () => {
        after = versions.deleteBefore(workspaceId, before(keepVersionsDays), after);
        return after !== undefined;
      });
    }
    if (keepDeliveriesDays > 0) {
      let cursor: DeliveriesCursor | undefined;
      await this.#repeat(workspaceId, () => {
        if (!cluster.owns(workspaceId)) return false;
        cursor = deliveries.deleteBefore(workspaceId, before(keepDeliveriesDays), cursor);
        return cursor !== undefined;
      });
    }
    if (keepAuditDays > 0) {
      const ms = before(keepAuditDays);
      await this.#repeat(workspaceId, () => cluster.owns(workspaceId) && audit.deleteBefore(workspaceId, ms));
    }
  }

  /**
   * Takes one step in each turn until there is nothing left to do, the workspace is deleted, or a step fails. A failure is reported
   * and not thrown, so that the sweep continues with everything else.
   */
  async #repeat(workspaceId: WorkspaceId, step: () => boolean): Promise<void> {
    // Only the home of a deleted workspace removes its remains.
    const isDeleted = () => this.#context.removals.isPending(removalOf(workspaceId));
    try {
      while (!this.#isClosed && !isDeleted() && step()) {
        await nextTurn();
        await this.#context.store.durable();
      }
    } catch (error) {
      this.#report(error);
    }
  }

  /** The sweep continues with everything else, and the next sweep tries again. */
  #report(error: unknown): void {
    this.#context.log.error({ err: error }, 'what is too old could not be deleted');
  }

  #now(): number {
    const { now = Date.now } = this.#options;
    return now();
  }

  /** Takes no further step. */
  [Symbol.dispose](): void {
    clearInterval(this.#timer);
    this.#isClosed = true;
  }
}
