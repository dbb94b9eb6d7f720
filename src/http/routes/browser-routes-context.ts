import type { Log } from '#src/base/log/log.ts';
import type { AuditTrail } from '#src/people/audit/audit-trail.ts';
import type { PageFiles } from '../page-files.ts';

/** The parts that all routes for browsers share: their pages, and what signing in from them needs. */
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
