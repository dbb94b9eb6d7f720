/** `troupe run`: opens a notebook, executes it, shows what happens, and closes it again. */
import { existsSync } from 'node:fs';
import { resolve } from 'node:path';
import type { Client } from '#src/client/client.ts';
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
import { type LiveSession, openLiveSession } from './live-session.ts';
import { readNotebookFile } from './notebook-file.ts';
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
  /** Leave the session and its environment open. */
  readonly keep: boolean;
  /** Delete an imported notebook at the end. */
  readonly remove: boolean;
  readonly outputDir: string | undefined;
}

/** What came of the command. */
export interface FinishedRun {
  readonly notebookId: string;
  readonly run: Run;
  readonly files: readonly KeptFile[];
}

/** Returns the ended run, whether it succeeded or not, after closing everything that was opened for it. */
export async function runNotebook(options: RunNotebookOptions): Promise<FinishedRun> {
  const { client, terminal, cwd, interruption, keep } = options;
  let activity = () => 'reading the notebook';
  const line = new LiveLine(terminal, () => activity());
  const shown = options.quiet ? muted(line.terminal) : line.terminal;
  try {
    const { notebook, isImported } = await findNotebook(options);
    const request = await orElse(
      () => requestFor(notebook, options.cells, options.cacheMode),
      // The notebook has never run, so nobody needs the imported copy.
      async () => (isImported ? client.notebooks.delete(notebook.id) : undefined),
    );
    if (isImported) shown.err(`imported ${options.file} as ${notebook.id}\n`);
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
      return { notebookId: notebook.id, run, files: files() };
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
): Promise<{ notebook: Notebook; isImported: boolean }> {
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
  return {
    notebook: await client.notebooks.import(content, { signal: interruption.leave }),
    isImported: true,
  };
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
