/** `troupe run`: opens a notebook, executes it, shows what happens, and closes it again. */
import { existsSync } from 'node:fs';
import { resolve } from 'node:path';
import type { Notebook } from '#src/wire/notebook.ts';
import type { CacheMode, Run } from '#src/wire/run.ts';
import { CommandFailure, EXIT } from '../exit-code.ts';
import { durationText } from '../show/duration.ts';
import type { KeptFile } from '../show/output-files.ts';
import type { Terminal } from '../terminal.ts';
import { requestFor } from './cell-selection.ts';
import type { FetchedFile } from './file-transfer.ts';
import { followRun } from './follow-run.ts';
import type { Interruption } from './interruption.ts';
import { LiveLine } from './live-line.ts';
import { type LiveSession, openLiveSession } from './live-session.ts';
import { readNotebookFile } from './notebook-file.ts';
import { titleOfFile } from './notebook-title.ts';
import { pushForRun } from './push-notebook.ts';
import { checkReport, type FrontEnd, type WrittenReport, writeReport } from './report.ts';
import { bringBack, type RunFiles, takeAlong } from './run-files.ts';
import { outputDirectory, runScreen } from './run-show.ts';

/** The options of the command. */
export interface RunNotebookOptions extends RunFiles {
  readonly terminal: Terminal;
  readonly interruption: Interruption;
  /** Show only the progress, and only on a terminal. */
  readonly quiet: boolean;
  readonly notebookId: string | undefined;
  /** Ids or names of cells; `undefined` runs all. */
  readonly cells: readonly string[] | undefined;
  readonly cacheMode: CacheMode;
  /** Command-line arguments of the notebook; undefined when none are given. */
  readonly arguments: readonly string[] | undefined;
  /** Run nothing when cells have structural errors. */
  readonly strict: boolean;
  /** Leave the session and its environment open. */
  readonly keep: boolean;
  /** Delete an imported notebook at the end. */
  readonly remove: boolean;
  readonly outputDir: string | undefined;
  /** Files to write the executed notebook to. */
  readonly reports: readonly string[];
  /** Where programs are looked for, as in `PATH`. */
  readonly searchPath: string | undefined;
  /** Where an HTML file has its front end. */
  readonly frontEnd: FrontEnd | undefined;
}

/** What came of the command. */
export interface FinishedRun {
  readonly notebookId: string;
  readonly run: Run;
  readonly files: readonly KeptFile[];
  readonly fetched: readonly FetchedFile[];
  /** What was to be brought back and is not there. */
  readonly missing: readonly string[];
  readonly reports: readonly WrittenReport[];
}

/** Returns the ended run, whether it succeeded or not, after closing everything that was opened for it. */
export async function runNotebook(options: RunNotebookOptions): Promise<FinishedRun> {
  const { client, terminal, cwd, interruption, keep } = options;
  let activity = () => 'reading the notebook';
  const line = new LiveLine(terminal, () => activity());
  const shown = options.quiet ? muted(line.terminal) : line.terminal;
  try {
    for (const report of options.reports) checkReport(report, options.searchPath);
    const { notebook, isImported, how } = await findNotebook(options);
    const request = await orElse(
      () =>
        requestFor(notebook, options.cells, {
          cacheMode: options.cacheMode,
          structuralErrors: options.strict ? 'refuse' : 'skip',
        }),
      // The notebook has never run, so nobody needs the imported copy.
      async () => (isImported ? client.notebooks.delete(notebook.id) : undefined),
    );
    if (how !== undefined) shown.err(`${how}\n`);
    activity = () => 'storing files';
    await takeAlong(options, notebook, shown, interruption.stop);
    activity = () => 'starting the kernel';
    const live = await openLiveSession({
      client,
      notebookId: notebook.id,
      arguments: options.arguments,
      interruption,
      waitsFor(text) {
        shown.err(`${text}\n`);
        activity = () => text;
      },
    });
    shown.err(`${openedText(live)}\n`);

    let runId = '';
    const directory = outputDirectory(cwd, options.outputDir, '{run}');
    const { screen, files } = runScreen({ terminal: shown, client, cwd, directory, runId: () => runId });
    const cancel = () => {
      line.terminal.err(`\ncancelling ${runId}; press Ctrl-C again to leave at once\n`);
      activity = () => 'cancelling';
      client.runs.cancel(runId, { signal: interruption.leave }).catch(() => {}); // the run may have ended
    };
    const submit = async () => {
      interruption.stop.throwIfAborted();
      const submitted = await client.executions.submit(notebook.id, request, { signal: interruption.leave });
      runId = submitted.runId;
      interruption.instead = cancel;
      return runId;
    };
    activity = () => screen.activity;
    try {
      const take = screen.take.bind(screen);
      const run = await followRun({
        client,
        sessionId: notebook.id,
        run: submit,
        take,
        signal: interruption.leave,
      });
      interruption.instead = undefined;
      await screen.finish(run);
      const reports = [];
      for (const report of options.reports) {
        const written = await writeReport({ ...options, report, notebook, run });
        shown.err(`wrote ${written.path} (${written.bytes} bytes)\n`);
        reports.push(written);
      }
      const { files: fetched, missing } = await bringBack(options, run, shown, interruption.leave);
      for (const path of missing) line.terminal.err(`troupe: the notebook has not written ${path}\n`);
      return { notebookId: notebook.id, run, files: files(), fetched, missing, reports };
    } finally {
      activity = () => 'closing the session';
      if (interruption.leave.aborted || keep) {
        if (live.isNew) line.terminal.err(`the session stays open: SERVICE_SESSION_ID=${notebook.id}\n`);
      } else {
        await live.close(interruption.leave);
        if (isImported && options.remove) await client.notebooks.delete(notebook.id);
      }
    }
  } finally {
    line[Symbol.dispose]();
  }
}

async function findNotebook(
  options: RunNotebookOptions,
): Promise<{ notebook: Notebook; isImported: boolean; how?: string }> {
  const { client, cwd, interruption, file, notebookId } = options;
  if (file !== undefined && notebookId !== undefined) {
    throw new CommandFailure('Give a file or --notebook, not both.', EXIT.usage);
  }
  const isId = file !== undefined && /^nb_\w+$/.test(file) && !existsSync(resolve(cwd, file));
  const id = notebookId ?? (isId ? file : undefined);
  if (id !== undefined) {
    return { notebook: await client.notebooks.get(id, { signal: interruption.stop }), isImported: false };
  }
  if (file === undefined) {
    throw new CommandFailure('Name a notebook file, or use --notebook <id>.', EXIT.usage);
  }
  const content = readNotebookFile(file, cwd);
  if (options.remove) {
    const title = titleOfFile(file, content);
    const notebook = await client.notebooks.import({ ...content, title }, { signal: interruption.leave });
    return { notebook, isImported: true, how: `imported ${file} as ${notebook.id}` };
  }
  const { notebook, isNew } = await pushForRun(client, file, content, interruption.leave);
  return { notebook, isImported: isNew, how: `${isNew ? 'imported' : 'updated'} ${file} as ${notebook.id}` };
}

/** Returns what `attempt` returns. When it throws, `undo` runs before the error is passed on. */
async function orElse<T>(attempt: () => T, undo: () => Promise<void>): Promise<T> {
  try {
    return attempt();
  } catch (error) {
    await undo();
    throw error;
  }
}

function openedText({ isNew, session }: LiveSession): string {
  const { totalMs } = session.phases;
  if (!isNew) return 'using the open session';
  return `kernel ready${totalMs === undefined ? '' : ` in ${durationText(totalMs)}`}`;
}

function muted(terminal: Terminal): Terminal {
  return { ...terminal, out: () => {}, err: () => {}, printed: () => {} };
}
