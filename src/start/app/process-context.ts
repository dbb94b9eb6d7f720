import type { Config } from '#src/base/config/config.ts';
import type { Log } from '#src/base/log/log.ts';
import type { DataDirectory } from '#storage/disk/data-directory.ts';

/** The parts that every process of a server, and of a kernel node, has from its first moment. */
export interface ProcessContext {
  readonly config: Config;
  readonly log: Log;
  readonly directory: DataDirectory;
}
