/** `troupe run`: opens a notebook, executes it, shows the progress, and closes it again. */
import { existsSync } from 'node:fs';
import { resolve } from 'node:path';
import type { Notebook } from '#src/wire/notebook.ts';
import type { CacheMode, Run } from '#src/wire/run.ts';
import { CommandFailure, EXIT } from '../exit-code.ts';
import { durationText } from '../show/duration.ts';
import type { KeptFile } from '../show/output-files.ts';
import type { Terminal } from '../terminal.ts';
import { requestFor } from './cell-selection.ts';
import { followRun } from './follow-run.ts';
import type { Interruption } from './interruption.ts';
import { LiveLine } from './live-line.ts';
import { type LiveSession, notesOf, openLiveSession } from './live-session.ts';
import { readNotebookFile } from './notebook-file.ts';
import { titleOfFile } from './notebook-title.ts';
import { pushForRun } from './push-notebook.ts';
import { checkReport } from './report.ts';
import { takeAlong } from './run-files.ts';
import { type ResultOptions, type RunResults, writeResults } from './run-results.ts';
import { outputDirectory, runScreen } from './run-show.ts';

/** The options of the command. */
export interface RunNotebookOptions extends ResultOptions {
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
  /** How many seconds the run may take; undefined for no deadline. */
  readonly timeoutS: number | undefined;
  /** Metadata of the run; undefined when none are given. */
  readonly metadata: Readonly<Record<string, string>> | undefined;
  /** Leave the session and its environment open. */
  readonly keep: boolean;
  /** Delete an imported notebook at the end. */
  readonly remove: boolean;
  readonly outputDir: string | undefined;
}

/** The result of the command. */
export interface FinishedRun extends RunResults {
  readonly notebookId: string;
  readonly run: Run;
  readonly files: readonly KeptFile[];
}

/** Returns the ended run, whether it succeeded or not, after closing everything that was opened for it. */
export async function runNotebook(options: RunNotebookOptions): Promise<FinishedRun> {
  const { client, interruption, keep } = options;
  const progress: Progress = { activity: () => 'reading the notebook' };
  using line = new LiveLine(options.terminal, () => progress.activity());
  for (const report of options.reports) checkReport(report, options.cwd, options.searchPath);
  const found = await findNotebook(options);
  try {
    return await runFound(options, found, line.terminal, progress);
  } finally {
    if (found.isImported && options.remove && !keep && !interruption.leave.aborted)
      await client.notebooks.delete(found.notebook.id);
  }
}

/** The present step, for the status line. */
interface Progress {
  activity: () => string;
}

async function runFound(
  options: RunNotebookOptions,
  { notebook, isImported, how }: FoundNotebook,
  terminal: Terminal,
  progress: Progress,
): Promise<FinishedRun> {
  const { client, cwd, interruption, keep } = options;
  const shown = options.quiet ? muted(terminal) : terminal;
  const request = await orElse(
    () =>
      requestFor(notebook, options.cells, {
        cacheMode: options.cacheMode,
        structuralErrors: options.strict ? 'refuse' : 'skip',
        ...(options.timeoutS === undefined ? {} : { timeoutS: options.timeoutS }),
        ...(options.metadata === undefined ? {} : { metadata: options.metadata }),
      }),
    // The notebook has never run, so nobody needs the imported copy.
    async () => (isImported && !options.remove ? client.notebooks.delete(notebook.id) : undefined),
  );
  if (how !== undefined) shown.err(`${how}\n`);
  progress.activity = () => 'storing files';
  await takeAlong(options, notebook, shown, interruption.stop);
  progress.activity = () => 'starting the kernel';
  const live = await openLiveSession({
    client,
    notebookId: notebook.id,
    arguments: options.arguments,
    interruption,
    waitsFor(text) {
      shown.err(`${text}\n`);
      progress.activity = () => text;
    },
  });
  for (const note of notesOf(live.session)) shown.err(`${note}\n`);
  shown.err(`${openedText(live)}\n`);

  let runId = '';
  const directory = outputDirectory(cwd, options.outputDir, '{run}');
  const { screen, files } = runScreen({
    terminal: shown,
    client,
    cwd,
    directory,
    runId: () => runId,
    sessionId: () => notebook.id,
  });
  const cancel = () => {
    terminal.err(`\ncancelling ${runId}; press Ctrl-C again to leave at once\n`);
    progress.activity = () => 'cancelling';
    client.runs.cancel(runId, { signal: interruption.leave }).catch(() => {}); // the run may have ended
  };
  const submit = async () => {
    interruption.stop.throwIfAborted();
    const submitted = await client.executions.submit(notebook.id, request, { signal: interruption.leave });
    runId = submitted.runId;
    interruption.instead = cancel;
    if (interruption.stop.aborted) cancel(); // Ctrl-C was pressed during the submission
    return runId;
  };
  progress.activity = () => screen.activity;
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
    progress.activity = () => 'writing its report and files';
    // After a cancel, written files are still fetched; the next Ctrl-C stops that.
    const signal = interruption.stop.aborted ? interruption.leave : interruption.stop;
    const results = await writeResults(options, notebook, run, { shown, warnings: terminal }, signal);
    return { notebookId: notebook.id, run, files: files(), ...results };
  } finally {
    progress.activity = () => 'closing the session';
    if (interruption.leave.aborted || keep) {
      if (live.isNew) terminal.err(`the session stays open: SERVICE_SESSION_ID=${notebook.id}\n`);
    } else await live.close(interruption.leave);
  }
}

/** The notebook to run. */
interface FoundNotebook {
  readonly notebook: Notebook;
  /** Whether this command has made it. */
  readonly isImported: boolean;
  /** Says in words how the notebook was found or made. */
  readonly how?: string;
}

async function findNotebook(options: RunNotebookOptions): Promise<FoundNotebook> {
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

/** Returns the result of `attempt`. When it throws, `undo` runs before the error is passed on. */
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
