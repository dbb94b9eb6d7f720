/** The background work of the homes in this worker: removing deleted and expired records. */

import type { AsyncDisposableStack } from '#src/base/async/async-disposable-stack.ts';
import type { Log } from '#src/base/log/log.ts';
import type { OperatorWarning } from '#src/base/log/operator-warning.ts';
import { DeliveryRetention } from '#src/operate/retention/delivery-retention.ts';
import { Retention } from '#src/operate/retention/retention.ts';
import { RetentionClock } from '#src/operate/retention/retention-clock.ts';
import { RunRetention } from '#src/operate/retention/run-retention.ts';
import { VersionRetention } from '#src/operate/retention/version-retention.ts';
import { AuditForwarding } from '#src/people/audit/audit-forwarding.ts';
import { openReceiver } from '#src/people/audit/audit-receiver.ts';
import type { AuditTrail } from '#src/people/audit/audit-trail.ts';
import type { PlaneContext, RunPlaneContext } from '#src/runtime/sessions/plane-context.ts';

/**
 * Forwards the audit if a setting names a receiver. Returns a function that lists warnings for operators. `stack` ends
 * it.
 */
export function forwardAudit(
  context: PlaneContext,
  audit: AuditTrail,
  stack: AsyncDisposableStack,
): () => readonly OperatorWarning[] {
  if (context.config.auditForward === undefined) return () => [];
  const forwarding = stack.use(
    new AuditForwarding(context, audit, openReceiver(context.config.auditForward)),
  );
  return () => forwarding.warnings;
}

/**
 * Begins the work, and begins again when workspaces come here from another worker. Returns the deletion of old records. `stack` ends
 * it.
 */
export function beginBackgroundWork(
  context: RunPlaneContext,
  audit: AuditTrail,
  stack: AsyncDisposableStack,
): Retention {
  const { cluster, store, log, removals, runDeletion } = context;
  const owns = cluster.owns.bind(cluster);
  const retention = stack.use(
    new Retention(context, {
      runs: new RunRetention(store, runDeletion, owns),
      versions: new VersionRetention(store, owns),
      deliveries: new DeliveryRetention(store),
      audit,
      clock: new RetentionClock(store, (aheadMs) => warnOfClock(log, aheadMs)),
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
