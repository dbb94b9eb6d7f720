/** The files that `troupe run` writes once the run has ended, whether it succeeded or not. */
import type { Notebook } from '#src/contract/wire/notebook.ts';
import type { Run } from '#src/contract/wire/run.ts';
import type { Terminal } from '../terminal.ts';
import type { FetchedFile } from './file-transfer.ts';
import {
  type FrontEnd,
  pageWithPictures,
  type ReportPage,
  type WrittenReport,
  writeReport,
} from './report.ts';
import { bringBack, type RunFiles } from './run-files.ts';

/** The files to write, and how. */
export interface ResultOptions extends RunFiles {
  /** Files to write the executed notebook to. */
  readonly reports: readonly string[];
  /** The address of the server. */
  readonly baseUrl: string;
  /** The folders in which programs are searched, as in `PATH`. */
  readonly searchPath: string | undefined;
  /** The place of an HTML file's front end. */
  readonly frontEnd: FrontEnd | undefined;
  /** Whether reports have outputs only. */
  readonly hideCode?: boolean | undefined;
}

/** The written files. */
export interface RunResults {
  readonly fetched: readonly FetchedFile[];
  /** Requested files that do not exist. */
  readonly missing: readonly string[];
  readonly reports: readonly WrittenReport[];
  /** Why something could not be written. */
  readonly failures: readonly string[];
}

/** Where progress and warnings are written. */
interface Terminals {
  readonly shown: Terminal;
  readonly warnings: Terminal;
}

/**
 * Writes the reports and fetches the files. A failure is reported and does not stop the rest, because the run may have taken
 * hours. Throws only when `signal` aborts.
 */
export async function writeResults(
  options: ResultOptions,
  notebook: Notebook,
  run: Run,
  { shown, warnings }: Terminals,
  signal: AbortSignal,
): Promise<RunResults> {
  const failures: string[] = [];
  const attempt = async <T>(step: () => Promise<T>): Promise<T | undefined> => {
    signal.throwIfAborted();
    try {
      return await step();
    } catch (error) {
      signal.throwIfAborted();
      const message = error instanceof Error ? error.message : String(error);
      warnings.err(`troupe: ${message}\n`);
      failures.push(message);
      return undefined;
    }
  };
  const reports: WrittenReport[] = [];
  // All reports share one page, because drawing takes long. The session with the scripts of bokeh would also end by itself in the meantime.
  let drawn: Promise<ReportPage> | undefined;
  const page = () => {
    drawn ??= pageWithPictures({ ...options, notebook, run, signal });
    return drawn;
  };
  for (const report of options.reports) {
    const written = await attempt(() => writeReport({ ...options, report, notebook, page, signal }));
    if (written === undefined) continue;
    shown.err(`wrote ${written.path} (${written.bytes} bytes)\n`);
    reports.push(written);
    if (written.missing !== undefined)
      warnings.err(
        `troupe: ${written.path} has only the text of ${written.missing.join(', ')}: ${written.why ?? "marimo's front end draws no picture of it"}. An .html file with --front-end server shows it by scripts.\n`,
      );
  }
  const { files: fetched = [], missing = [] } =
    (await attempt(() => bringBack(options, run, shown, signal))) ?? {};
  for (const path of missing) warnings.err(`troupe: the notebook has not written ${path}\n`);
  return { fetched, missing, reports, failures };
}
