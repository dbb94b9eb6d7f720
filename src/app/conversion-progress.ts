/** Reports a conversion of the store to the log and to the service manager, which would end a start that takes long. */
import type { Log } from '#src/core/log.ts';
import { notifyServiceManager } from '#src/os/service-notice.ts';
import { describeProgress, type MigrationProgress, percentOf } from '#storage/migrations/conversion.ts';

/** Progress is reported every few seconds, after a commit; a disk may take long for one. */
const MAX_SILENCE_US = 180_000_000;

/** Returns a function that logs the progress of a conversion. */
export function conversionReporter(log: Log): (progress: MigrationProgress) => void {
  return (progress) => {
    log.info(
      { ...progress, percent: percentOf(progress) },
      'the store is being converted to the format of this release',
    );
    void notifyServiceManager({ STATUS: describeProgress(progress), EXTEND_TIMEOUT_USEC: MAX_SILENCE_US });
  };
}
