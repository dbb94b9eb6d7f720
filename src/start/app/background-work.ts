/** The background work of the homes in this worker: removing deleted and expired records. */

import type { AsyncDisposableStack } from '#src/base/async/async-disposable-stack.ts';
import type { Config } from '#src/base/config/config.ts';
import type { Log } from '#src/base/log/log.ts';
import type { OperatorWarning } from '#src/base/log/operator-warning.ts';
import { Retention } from '#src/operate/retention/retention.ts';
import { RetentionClock } from '#src/operate/retention/retention-clock.ts';
import type { RunRetention } from '#src/operate/retention/run-retention.ts';
import { VersionRetention } from '#src/operate/retention/version-retention.ts';
import { AuditForwarding } from '#src/people/audit/audit-forwarding.ts';
import { openReceiver } from '#src/people/audit/audit-receiver.ts';
import type { AuditTrail } from '#src/people/audit/audit-trail.ts';
import type { Cluster } from '#src/runtime/homes/cluster.ts';
import { SYSTEM } from '#storage/keys.ts';
import { type Removals, removalOf } from '#storage/removals.ts';
import type { Store } from '#storage/store.ts';

export interface BackgroundWorkOptions {
  readonly config: Config;
  readonly cluster: Cluster;
  readonly store: Store;
  readonly log: Log;
  readonly removals: Removals;
  readonly runs: RunRetention;
  readonly audit: AuditTrail;
}

/**
 * Forwards the audit if a setting names a receiver. Returns a function that lists warnings for operators. `stack` ends
 * it.
 */
export function forwardAudit(
  {
    config,
    cluster,
    store,
    log,
    audit,
  }: Pick<BackgroundWorkOptions, 'config' | 'cluster' | 'store' | 'log' | 'audit'>,
  stack: AsyncDisposableStack,
): () => readonly OperatorWarning[] {
  if (config.auditForward === undefined) return () => [];
  const forwarding = stack.use(
    new AuditForwarding({
      store,
      trail: audit,
      receiver: openReceiver(config.auditForward),
      isResponsible: () => cluster.owns(SYSTEM),
      log,
    }),
  );
  return () => forwarding.warnings;
}

/**
 * Begins the work, and begins again when workspaces come here from another worker. Returns the deletion of old records. `stack` ends
 * it.
 */
export function beginBackgroundWork(options: BackgroundWorkOptions, stack: AsyncDisposableStack): Retention {
  const { config, cluster, store, log, removals, runs, audit } = options;
  const retention = stack.use(
    new Retention({
      settings: config,
      store,
      runs,
      versions: new VersionRetention(store, (workspaceId, id) => cluster.owns(workspaceId, id)),
      audit,
      clock: new RetentionClock({ store, onHeld: (aheadMs) => warnOfClock(log, aheadMs) }),
      owns: (workspaceId) => cluster.owns(workspaceId),
      isDeleted: (workspaceId) => removals.isPending(removalOf(workspaceId)),
      onFault: (error) => log.error({ err: error }, 'what is too old could not be deleted'),
    }),
  );
  if (store.isReadOnly) return retention;
  const begin = () => {
    removals.resume();
    retention.start();
  };
  begin();
  cluster.onSlotsTaken(begin);
  return retention;
}

function warnOfClock(log: Log, aheadMs: number | undefined): void {
  const since = aheadMs !== undefined && { hoursSinceLastSweep: Math.round(aheadMs / 3_600_000) };
  log.warn({ ...since }, 'the clock seems to be ahead: nothing is deleted until it is confirmed');
}
