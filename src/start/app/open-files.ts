import type { AsyncDisposableStack } from '#src/base/async/async-disposable-stack.ts';
import { unawaited } from '#src/base/async/unawaited.ts';
import type { WorkspaceId } from '#src/base/ids.ts';
import type { CountedFiles } from '#src/workspace/files/file-quota.ts';
import { WorkspaceFiles } from '#src/workspace/files/workspace-files.ts';
import { FileQuotaWatch } from './file-quota-watch.ts';
import type { Ground } from './ground.ts';
import type { Late } from './late-planes.ts';

const MIB = 1024 * 1024;

/** A count of files that one worker sends to the others. */
interface Counted extends CountedFiles {
  readonly workspaceId: WorkspaceId;
}

/**
 * Opens the files of workspaces, and the counts of files for quotas. Each of several workers watches the workspaces of its own
 * kernels, and admits sessions and uploads by its own numbers. A worker need not count files that another has just counted.
 */
export function openFiles(
  { log, cluster, identity: { limits }, prerequisites: { directory } }: Ground,
  late: Late,
  stack: AsyncDisposableStack,
): WorkspaceFiles {
  const rootOf = (workspaceId: WorkspaceId, isNeeded: boolean) =>
    isNeeded ? directory.workspaceFiles(workspaceId) : directory.workspaceFilesPath(workspaceId);
  const files = new WorkspaceFiles(rootOf, {
    maxOf: (workspaceId) => ({
      bytes: limits.of(workspaceId, 'filesMb') * MIB,
      entries: limits.of(workspaceId, 'files'),
    }),
    onChange(workspaceId, { bytes, entries }, isOver) {
      if (isOver)
        log.warn({ workspaceId, bytes, entries }, 'the files of a workspace are beyond their quota');
      else log.info({ workspaceId, bytes, entries }, 'the files of a workspace are within their quota again');
    },
    onCounted(workspaceId, counted) {
      if (cluster.size === 1) return;
      const told: Counted = { workspaceId, ...counted };
      unawaited(cluster.askOthers('files-counted', told), 'open-files: the count for other workers');
    },
  });
  cluster.onAsked('files-counted', (payload) => {
    const { workspaceId, ...counted } = payload as Counted;
    files.quota.adopt(workspaceId, counted);
  });
  stack.use(
    new FileQuotaWatch(
      files.quota,
      () => late.planes.kernelsInUse.workspaces(),
      (error) => log.error({ err: error }, 'the files of a workspace could not be counted'),
    ),
  );
  return files;
}
