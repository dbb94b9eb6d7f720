/** `troupe run`: opens a notebook, executes it, shows what happens, and closes it again. */
import { existsSync } from 'node:fs';
import { dirname, resolve } from 'node:path';
import { ApiError } from '#src/client/api-error.ts';
import type { Client } from '#src/client/client.ts';
import type { Notebook } from '#src/wire/notebook.ts';
import type { CacheMode, Run } from '#src/wire/run.ts';
import { CommandFailure, EXIT } from '../exit-code.ts';
import { durationText } from '../show/duration.ts';
import type { KeptFile } from '../show/output-files.ts';
import type { Terminal } from '../terminal.ts';
import { requestFor } from './cell-selection.ts';
import { type FetchedFile, fetchFile, sendPath } from './file-transfer.ts';
import { followRun } from './follow-run.ts';
import type { Interruption } from './interruption.ts';
import { LiveLine } from './live-line.ts';
import { type LiveSession, openLiveSession } from './live-session.ts';
import { localImports } from './local-imports.ts';
import { readNotebookFile } from './notebook-file.ts';
import { titleOfFile } from './notebook-title.ts';
import { pushForRun } from './push-notebook.ts';
import { checkReport, type FrontEnd, writeReport } from './report.ts';
import { outputDirectory, runScreen } from './run-show.ts';

/** The options of the command. */
export interface RunNotebookOptions {
  readonly client: Client;
  readonly terminal: Terminal;
  readonly cwd: string;
  readonly interruption: Interruption;
  /** Show only the progress, and only on a terminal. */
  readonly quiet: boolean;
  /** A notebook file, or the id of a notebook. */
  readonly file: string | undefined;
  readonly notebookId: string | undefined;
  /** Ids or names of cells; `undefined` runs all. */
  readonly cells: readonly string[] | undefined;
  readonly cacheMode: CacheMode;
  /** Run nothing when cells have structural errors. */
  readonly strict: boolean;
  /** Leave the session and its environment open. */
  readonly keep: boolean;
  /** Delete an imported notebook at the end. */
  readonly remove: boolean;
  readonly outputDir: string | undefined;
  /** Files and folders that are stored in the workspace before the run. */
  readonly take: readonly string[];
  /** Whether to take along the modules beside the notebook that it imports. */
  readonly takeImports: boolean;
  /** Paths in the workspace that are copied here after the run, whether it succeeded or not. */
  readonly fetch: readonly string[];
  /** Files to write the executed notebook to. */
  readonly reports: readonly string[];
  /** Where an HTML file has its front end. */
  readonly frontEnd: FrontEnd | undefined;
}

/** What came of the command. */
export interface FinishedRun {
  readonly notebookId: string;
  readonly run: Run;
  readonly files: readonly KeptFile[];
  readonly fetched: readonly FetchedFile[];
  readonly reports: readonly FetchedFile[];
}

/** Returns the ended run, whether it succeeded or not, after closing everything that was opened for it. */
export async function runNotebook(options: RunNotebookOptions): Promise<FinishedRun> {
  const { client, terminal, cwd, interruption, keep } = options;
  let activity = () => 'reading the notebook';
  const line = new LiveLine(terminal, () => activity());
  const shown = options.quiet ? muted(line.terminal) : line.terminal;
  try {
    for (const report of options.reports) checkReport(report);
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
    await takeAlong(options, notebook);
    activity = () => 'starting the kernel';
    const live = await openLiveSession({ client, notebookId: notebook.id, interruption });
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
      const fetched = await fetchBack(options, shown);
      const reports = [];
      for (const report of options.reports)
        reports.push(await writeReport({ ...options, report, notebook, run }));
      for (const { path, bytes } of reports) shown.err(`${path}: ${bytes} bytes\n`);
      return { notebookId: notebook.id, run, files: files(), fetched, reports };
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

/** Stores what the notebook needs in the workspace. */
async function takeAlong({ client, cwd, file, take, takeImports }: RunNotebookOptions, notebook: Notebook) {
  for (const path of take) await sendPath(client, cwd, path);
  if (!takeImports) return;
  const folder = file === undefined ? cwd : dirname(resolve(cwd, file));
  const code = notebook.serialization.cells.map((cell) => cell.code).join('\n');
  for (const path of localImports(code, folder)) await sendPath(client, folder, path);
}

/** Copies what the notebook has written to where it is named. */
async function fetchBack({ client, cwd, fetch }: RunNotebookOptions, shown: Terminal) {
  const fetched: FetchedFile[] = [];
  for (const path of fetch) {
    try {
      fetched.push(...(await fetchFile(client, path, resolve(cwd, path))));
    } catch (error) {
      if (error instanceof ApiError && error.status === 404)
        throw new CommandFailure(`The notebook has not written ${path}.`);
      throw error;
    }
  }
  for (const { path, bytes } of fetched) shown.err(`${path}: ${bytes} bytes\n`);
  return fetched;
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
