import type { Log } from '#src/base/log/log.ts';
import type { AuditTrail } from '#src/people/audit/audit-trail.ts';
import type { PageFiles } from '../page-files.ts';

/** The parts that all routes for browsers share: the files of their pages, and the parts for signing in. */
export interface BrowserRoutesContext {
  /** The files of the console, the list of notebooks and the page around a notebook. */
  readonly files: PageFiles;
  readonly audit: AuditTrail;
  /** The address at which browsers reach this server, if it is configured. */
  readonly publicUrl: string | undefined;
  /** How many processes serve: see `AuthThrottle`. */
  readonly workers: number;
  readonly log: Log;
}
