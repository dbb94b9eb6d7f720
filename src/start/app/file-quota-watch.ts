/** Counts the files of workspaces with a quota while their kernels live, because notebook code can write files at any time. */

import { unawaited } from '#src/base/async/unawaited.ts';
import type { WorkspaceId } from '#src/base/ids.ts';
import type { FileQuota } from '#src/workspace/files/file-quota.ts';

const INTERVAL_MS = 10_000;

export interface FileQuotaWatchOptions {
  readonly quota: Pick<FileQuota, 'isSet' | 'refresh'>;
  /** Yields the workspaces in which kernels live, some more than once. */
  readonly inUse: () => Iterable<WorkspaceId>;
  readonly onFault: (error: unknown) => void;
}

export class FileQuotaWatch implements Disposable {
  readonly #options: FileQuotaWatchOptions;
  readonly #timer: NodeJS.Timeout;
  #isCounting = false;

  constructor(options: FileQuotaWatchOptions) {
    this.#options = options;
    this.#timer = setInterval(
      () => unawaited(this.sweep().catch(options.onFault), 'file-quota-watch: the sweep'),
      INTERVAL_MS,
    ).unref();
  }

  /** Counts, one after the other, the workspaces whose count is due. */
  async sweep(): Promise<void> {
    if (this.#isCounting) return;
    this.#isCounting = true;
    try {
      for (const workspaceId of new Set(this.#options.inUse()))
        if (this.#options.quota.isSet(workspaceId))
          await this.#options.quota.refresh(workspaceId, INTERVAL_MS);
    } finally {
      this.#isCounting = false;
    }
  }

  [Symbol.dispose](): void {
    clearInterval(this.#timer);
  }
}
