/**
 * Notes changes of the server as a whole in the audit of the caller's workspace. What belongs to the server is decided in
 * one worker, and a workspace has its home in perhaps another one: only that one writes its audit, so that its entries are
 * committed in the order of their ids and no page passes over one.
 */
import type { Cluster } from '#src/cluster/cluster.ts';
import { workspaceRecords } from '#storage/identity.ts';
import type { Store } from '#storage/store.ts';
import type { AuditContext, AuditedChange, AuditTrail } from './audit-trail.ts';

interface Noted {
  readonly actor: AuditContext;
  readonly changes: readonly AuditedChange[];
}

/** Returns what notes changes: at once and in the commit of the change, or with a promise where another worker has to. */
export function auditAtHome(
  audit: AuditTrail,
  store: Store,
  cluster: Cluster,
): (actor: AuditContext, changes: readonly AuditedChange[]) => Promise<void> | undefined {
  cluster.onAsked('audit', async (payload) => {
    const { actor, changes } = payload as Noted;
    const { workspaceId } = actor.principal;
    if (!cluster.owns(workspaceId)) return false;
    // The change may have been the deletion of this workspace.
    if (store.get(workspaceRecords, workspaceId) !== undefined) audit.noteAll(actor, changes);
    await store.durable();
    return true;
  });
  return (actor, changes) => {
    if (cluster.owns(actor.principal.workspaceId)) {
      audit.noteAll(actor, changes);
      return undefined;
    }
    return cluster.askOthers('audit', { actor, changes }).then((answers) => {
      // Its home may have ended at this moment.
      if (!answers.includes(true)) audit.noteAll(actor, changes);
    });
  };
}
