/** `troupe run`: a notebook is opened, executed and closed again while a person watches, or a program waits. */
import { existsSync } from 'node:fs';
import { resolve } from 'node:path';
import type { Client } from '#src/client/client.ts';
import type { CacheMode } from '#src/client/executions.ts';
import type { Notebook } from '#src/client/notebooks.ts';
import type { Run } from '#src/client/runs.ts';
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

export interface RunNotebookOptions {
  readonly client: Client;
  readonly terminal: Terminal;
  readonly cwd: string;
  readonly interruption: Interruption;
  /** Only the progress is shown, and that only to people. */
  readonly quiet: boolean;
  /** A notebook file, or the id of a notebook. */
  readonly file: string | undefined;
  readonly notebookId: string | undefined;
  /** By id or name; all when undefined. */
  readonly cells: readonly string[] | undefined;
  readonly cacheMode: CacheMode;
  /** The session and its environment stay open. */
  readonly keep: boolean;
  /** An imported notebook is deleted at the end. */
  readonly remove: boolean;
  readonly outputDir: string | undefined;
}

export interface FinishedRun {
  readonly notebookId: string;
  readonly run: Run;
  readonly files: readonly KeptFile[];
}

/** Resolves when the run has ended, whichever way, and everything is closed again that was opened for it. */
export async function runNotebook(options: RunNotebookOptions): Promise<FinishedRun> {
  const { client, terminal, cwd, interruption, keep } = options;
  let activity = () => 'reading the notebook';
  const line = new LiveLine(terminal, () => activity());
  const shown = options.quiet ? muted(line.terminal) : line.terminal;
  try {
    const { notebook, isImported } = await findNotebook(options);
    const request = await orElse(
      () => requestFor(notebook, options.cells, options.cacheMode),
      // Nothing has been done with it that anybody could want to see.
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
      line.terminal.err(`\ncancelling ${runId}; Ctrl-C again leaves at once\n`);
      activity = () => 'cancelling';
      client.runs.cancel(runId, { signal: interruption.leave }).catch(() => {}); // it may be over by now
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
    throw new CommandFailure('Say what to run: a notebook file, or --notebook <id>.', EXIT.usage);
  }
  const content = readNotebookFile(file, cwd);
  return {
    notebook: await client.notebooks.import(content, { signal: interruption.leave }),
    isImported: true,
  };
}

/** What `attempt` gives; when it throws, `undo` is done first. */
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
  if (!isNew) return 'using the session that is open';
  return `kernel ready${totalMs === undefined ? '' : ` in ${durationText(totalMs)}`}`;
}

function muted(terminal: Terminal): Terminal {
  return { ...terminal, out: () => {}, err: () => {} };
}
