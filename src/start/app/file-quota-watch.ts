/** Counts the files of workspaces with a quota while their kernels live, because notebook code can write files at any time. */

import { unawaited } from '#src/base/async/unawaited.ts';
import type { WorkspaceId } from '#src/base/ids.ts';
import type { FileQuota } from '#src/workspace/files/file-quota.ts';

const INTERVAL_MS = 10_000;

export class FileQuotaWatch implements Disposable {
  readonly #quota: FileQuota;
  readonly #inUse: () => Iterable<WorkspaceId>;
  readonly #timer: NodeJS.Timeout;
  #isCounting = false;

  /** `inUse` yields the workspaces in which kernels live, some more than once. */
  constructor(quota: FileQuota, inUse: () => Iterable<WorkspaceId>, onFault: (error: unknown) => void) {
    this.#quota = quota;
    this.#inUse = inUse;
    this.#timer = setInterval(
      () => unawaited(this.sweep().catch(onFault), 'file-quota-watch: the sweep'),
      INTERVAL_MS,
    ).unref();
  }

  /** Counts, one after the other, the workspaces whose count is due. */
  async sweep(): Promise<void> {
    if (this.#isCounting) return;
    this.#isCounting = true;
    try {
      for (const workspaceId of new Set(this.#inUse()))
        if (this.#quota.isSet(workspaceId)) await this.#quota.refresh(workspaceId, INTERVAL_MS);
    } finally {
      this.#isCounting = false;
    }
  }

  [Symbol.dispose](): void {
    clearInterval(this.#timer);
  }
}
