/** Removes files that pages had sent to kernels which have ended with their server or worker. */
import { setImmediate as nextTurn } from 'node:timers/promises';
import type { AsyncDisposableStack } from '#src/base/async/async-disposable-stack.ts';
import { unawaited } from '#src/base/async/unawaited.ts';
import type { WorkspaceId } from '#src/base/ids.ts';
import type { Cluster } from '#src/runtime/homes/cluster.ts';
import type { ElementFiles } from '#src/workspace/files/element-files.ts';
import { SYSTEM } from '#storage/keys.ts';
import type { Store } from '#storage/store.ts';

export interface ElementFileSweepOptions {
  readonly store: Store;
  readonly cluster: Pick<Cluster, 'owns' | 'onSlotsTaken'>;
  readonly files: Pick<ElementFiles, 'sweep'>;
  /** Returns whether a session of this worker has a kernel, or is about to have one. */
  readonly hasKernel: (workspaceId: WorkspaceId, sessionId: string) => boolean;
}

/** Sweeps the sessions of this worker now, and again when it becomes the home of others. `stack` ends it. */
export function beginElementFileSweep(options: ElementFileSweepOptions, stack: AsyncDisposableStack): void {
  const { store, cluster } = options;
  if (store.isReadOnly) return;
  let isClosed = false;
  stack.defer(() => {
    isClosed = true;
  });
  const begin = () =>
    unawaited(
      sweep(options, () => isClosed),
      'element-file-sweep: the sweep',
    );
  begin();
  cluster.onSlotsTaken(begin);
}

async function sweep(
  { store, cluster, files, hasKernel }: ElementFileSweepOptions,
  isClosed: () => boolean,
): Promise<void> {
  let partition: string | undefined;
  for (;;) {
    await nextTurn(); // the plane is still being opened, or other work waits
    if (isClosed()) return;
    partition = store.nextPartition(partition);
    if (partition === undefined) return;
    if (partition === SYSTEM) continue;
    const workspaceId = partition as WorkspaceId;
    await files.sweep(
      workspaceId,
      (sessionId) => !cluster.owns(workspaceId, sessionId) || hasKernel(workspaceId, sessionId),
    );
  }
}
