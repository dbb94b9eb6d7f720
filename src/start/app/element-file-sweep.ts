/** Removes files that pages had sent to kernels which have ended with their server or worker. */
import { setImmediate as nextTurn } from 'node:timers/promises';
import type { AsyncDisposableStack } from '#src/base/async/async-disposable-stack.ts';
import { unawaited } from '#src/base/async/unawaited.ts';
import type { WorkspaceId } from '#src/base/ids.ts';
import type { NotebookContext } from '#src/notebook/sessions/notebook-context.ts';
import type { NotebookSessionActors } from '#src/notebook/sessions/notebook-session-actors.ts';
import { SYSTEM } from '#storage/keys.ts';

/**
 * Removes the files of this worker's sessions without a kernel now, and again when it becomes the home of
 * further sessions. `stack` ends the work.
 */
export function beginElementFileSweep(
  context: NotebookContext,
  actors: NotebookSessionActors,
  stack: AsyncDisposableStack,
): void {
  const { store, cluster } = context;
  if (store.isReadOnly) return;
  let isClosed = false;
  stack.defer(() => {
    isClosed = true;
  });
  const begin = () =>
    unawaited(
      sweep(context, actors, () => isClosed),
      'element-file-sweep: the sweep',
    );
  begin();
  cluster.onSlotsTaken(begin);
}

async function sweep(
  { store, cluster, elementFiles }: NotebookContext,
  actors: NotebookSessionActors,
  isClosed: () => boolean,
): Promise<void> {
  /** Whether a session of this worker has a kernel, or is about to have one. */
  const hasKernel = (workspaceId: WorkspaceId, id: string) => {
    const peek = actors.peek({ workspaceId, id });
    return peek?.live === true && peek.snapshot.hasTag('resident');
  };
  let partition: string | undefined;
  for (;;) {
    await nextTurn(); // the plane is still being opened, or other work waits
    if (isClosed()) return;
    partition = store.nextPartition(partition);
    if (partition === undefined) return;
    if (partition === SYSTEM) continue;
    const workspaceId = partition as WorkspaceId;
    await elementFiles.sweep(
      workspaceId,
      (sessionId) => !cluster.owns(workspaceId, sessionId) || hasKernel(workspaceId, sessionId),
    );
  }
}
