import type { AsyncDisposableStack } from '#src/base/async/async-disposable-stack.ts';
import { unlinkSealed } from '#src/datasource/keys/sealed-connections.ts';
import { unlinkHook } from '#src/hooks/hook-states.ts';
import { unlinkHookIn } from '#src/hooks/hooks-in.ts';
import { unlinkHookEvent } from '#src/hooks/outbox.ts';
import { unlinkJob } from '#src/jobs/job-states.ts';
import { beginBackgroundWork, forwardAudit } from './background-work.ts';
import type { Planes } from './open-planes.ts';

export type Upkeep = ReturnType<typeof openUpkeep>;

/** Begins the work that nobody waits for: removing deleted workspaces, retention, forwarding the audit, jobs, and hooks. */
export function openUpkeep(planes: Planes, stack: AsyncDisposableStack) {
  const { log, identity, runtime, removals, permits, audit, environments } = planes;
  const workspaceDeletion = identity.openDeletion(removals, {
    mayBeInUse: (workspaceId) => environments.areInUse(workspaceId),
    isActive: (workspaceId) => runtime.isActive(workspaceId) || environments.areInUseNow(workspaceId),
    forget: (workspaceId) => {
      runtime.eraseWorkspace(workspaceId);
      permits.forget(workspaceId);
      planes.jobs.forget(workspaceId);
      planes.hooks.forget(workspaceId);
    },
    deleted: (workspaceId) => log.info({ workspaceId }, 'a workspace was deleted'),
    unlink(tx, key) {
      unlinkSealed(tx, key);
      unlinkHookIn(tx, key);
      unlinkHook(tx, key);
      unlinkHookEvent(tx, key);
      unlinkJob(tx, key);
    },
  });
  const auditWarnings = forwardAudit(planes, audit, stack);
  const retention = beginBackgroundWork(planes, audit, stack);
  planes.jobs.begin();
  planes.hooks.begin();
  return { workspaceDeletion, retention, warnings: () => [...auditWarnings(), ...retention.warnings] };
}
