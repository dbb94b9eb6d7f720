/** `troupe run`: opens a notebook, executes it, shows the progress, and closes it again. */
import { existsSync } from 'node:fs';
import { resolve } from 'node:path';
import { ApiError } from '#src/contract/client/api-error.ts';
import { newKey } from '#src/contract/client/connection.ts';
import type { Notebook } from '#src/contract/wire/notebook.ts';
import type { CacheMode, Run } from '#src/contract/wire/run.ts';
import type { NotebookSession } from '#src/contract/wire/session.ts';
import { CommandFailure, EXIT } from '../exit-code.ts';
import type { Input } from '../input.ts';
import { shortDuration } from '../show/duration.ts';
import type { KeptFile } from '../show/output-files.ts';
import type { Terminal } from '../terminal.ts';
import { requestFor } from './cell-selection.ts';
import {
  type CommandSession,
  notesOf,
  openLiveSession,
  openSessionOf,
  SessionTaken,
  whyUnusable,
} from './command-session.ts';
import type { FileLinks } from './file-links.ts';
import { followRun } from './follow-run.ts';
import type { Interruption } from './interruption.ts';
import { LiveLine } from './live-line.ts';
import { refuseUnreached } from './notebook-arguments.ts';
import { checkDatasources, withDatasources } from './notebook-datasources.ts';
import { importWarnings, type LocalNotebook, readNotebookFile } from './notebook-file.ts';
import { COPY_OF, pushFile, targetOfRun } from './notebook-sync.ts';
import { titleOfFile } from './notebook-title.ts';
import { checkReport } from './report.ts';
import { takeAlong } from './run-files.ts';
import { type ResultOptions, type RunResults, writeResults } from './run-results.ts';
import { outputDirectory, runScreen } from './run-show.ts';
import { awaitStart, ServerReturn } from './server-return.ts';

/** The options of the command. */
export interface RunNotebookOptions extends ResultOptions {
  readonly terminal: Terminal;
  readonly input: Input;
  readonly interruption: Interruption;
  /** Show only the progress, and only on a terminal. */
  readonly quiet: boolean;
  readonly notebookId: string | undefined;
  /** Ids or names of cells; `undefined` runs all. */
  readonly cells: readonly string[] | undefined;
  readonly cacheMode: CacheMode;
  /** Command-line arguments of the notebook; undefined when none are given. */
  readonly arguments: readonly string[] | undefined;
  /** The arguments of `-p`, which cells of the notebook must take. */
  readonly parameters: readonly string[];
  /** Run nothing when cells have structural errors. */
  readonly strict: boolean;
  /** How many seconds the run may take; undefined for no deadline. */
  readonly timeoutS: number | undefined;
  /** Metadata of the run; undefined when none are given. */
  readonly metadata: Readonly<Record<string, string>> | undefined;
  /** Leave the session and its environment open. */
  readonly keep: boolean;
  /** Return as soon as the run is submitted. The session ends by itself after the run. */
  readonly detach: boolean;
  /** Delete an imported notebook at the end. */
  readonly remove: boolean;
  readonly links: FileLinks;
  /** Datasources that the notebook gets before the run. */
  readonly datasources: readonly string[];
  /** Turn `pip install` lines of cells into dependencies of the notebook. */
  readonly install: boolean;
  /** Replace the notebook of the file, even when it has changes that the file does not have. */
  readonly force: boolean;
  /** Run the file's notebook in its present state on the server, without pushing the file. */
  readonly theirs: boolean;
  readonly outputDir: string | undefined;
}

/** The result of the command. */
export interface FinishedRun extends RunResults {
  readonly notebookId: string;
  /** The run: ended, or in progress if the command does not wait for its end. */
  readonly run: Run;
  readonly files: readonly KeptFile[];
}

/**
 * Runs the notebook, closes what was opened for the run, and returns the ended run, whether it succeeded or not. With `detach`,
 * returns the run as soon as it is submitted.
 */
export async function runNotebook(options: RunNotebookOptions): Promise<FinishedRun> {
  const { client, interruption, keep } = options;
  const progress: Progress = { activity: () => 'reading the notebook' };
  using line = new LiveLine(options.terminal, () => progress.activity());
  const say = (text: string) => (options.quiet ? undefined : line.terminal.err(`${text}\n`));
  const server = new ServerReturn({ say });
  const run = () => runFound(options, found, { terminal: line.terminal, progress, server });
  for (const report of options.reports) checkReport(report, options.cwd, options.searchPath);
  await awaitStart(client, { say, signal: interruption.stop });
  await checkDatasources(client, options.datasources);
  let found = await findNotebook(options, line.terminal);
  try {
    try {
      return await run();
    } catch (error) {
      if (!(error instanceof SessionTaken)) throw error;
      // Another command was faster, or the open session cannot take this run.
      found = await copyOf(options, found, `${error.why}.`);
      return await run();
    }
  } finally {
    const { id } = found.notebook;
    if (found.isTemporary && !keep) {
      if (options.detach || interruption.leave.aborted || server.hasGivenUp)
        line.terminal.err(`the copy ${id} stays: troupe notebooks delete ${id}\n`);
      else await server.attempt(() => client.notebooks.delete(id), interruption.leave);
    }
  }
}

/** The parts of the command that show a run and wait for its server. */
interface Surroundings {
  readonly terminal: Terminal;
  readonly progress: Progress;
  readonly server: ServerReturn;
}

/** The present step, for the status line. */
interface Progress {
  activity: () => string;
}

async function runFound(
  options: RunNotebookOptions,
  { notebook: found, isNew, isTemporary, usesSession, how }: FoundNotebook,
  { terminal, progress, server }: Surroundings,
): Promise<FinishedRun> {
  const { client, cwd, interruption, keep, detach } = options;
  const shown = options.quiet ? muted(terminal) : terminal;
  const notebook = await withChosenDatasources(options, found);
  const request = await orElse(
    () => {
      refuseUnreached(
        options.parameters,
        notebook.serialization.cells.map(({ code }) => code),
      );
      return requestFor(notebook, options.cells, {
        cacheMode: options.cacheMode,
        structuralErrors: options.strict ? 'refuse' : 'skip',
        ...(options.timeoutS === undefined ? {} : { timeoutS: options.timeoutS }),
        ...(options.metadata === undefined ? {} : { metadata: options.metadata }),
      });
    },
    // The run never began, so nobody needs the imported notebook.
    async () => (isNew && !isTemporary ? client.notebooks.delete(notebook.id) : undefined),
  );
  if (how !== undefined) shown.err(`${how}\n`);
  progress.activity = () => 'storing files';
  await takeAlong(options, notebook, shown, interruption.stop);
  progress.activity = () => 'starting the kernel';
  const live = await openLiveSession({
    client,
    notebookId: notebook.id,
    isExclusive: !usesSession,
    keep,
    arguments: options.arguments,
    interruption,
    server,
    waitsFor(text) {
      shown.err(`${text}\n`);
      progress.activity = () => text;
    },
  });
  for (const note of notesOf(live.session)) shown.err(`${note}\n`);
  shown.err(`${openedText(live)}\n`);

  let runId = '';
  let isLeftRunning = false;
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
  const leaveRunning = () => {
    isLeftRunning = true;
    terminal.err(`\n${goesOnText(runId, live.isNew && !keep)}`);
  };
  const idempotencyKey = newKey(); // if the server stops and its answer is lost, repeating the submission must not make a second run
  const submit = async () => {
    interruption.stop.throwIfAborted();
    const signal = interruption.leave;
    const sent = () => client.executions.submit(notebook.id, request, { signal, idempotencyKey });
    const submitted = await server.attempt(sent, signal);
    runId = submitted.runId;
    interruption.instead = cancel;
    if (interruption.stop.aborted)
      cancel(); // Ctrl-C was pressed during the submission
    else interruption.detachOnQuit(options.input, leaveRunning);
    return runId;
  };
  const hint = quitHint(options.input);
  progress.activity = () => `${screen.activity}${hint()}`;
  try {
    if (detach) {
      await submit();
      const run = await client.runs.get(runId, { signal: interruption.leave });
      isLeftRunning = true;
      shown.err(goesOnText(runId, live.isNew && !keep));
      return { notebookId: notebook.id, run, files: [], fetched: [], missing: [], reports: [], failures: [] };
    }
    const take = screen.take.bind(screen);
    const run = await followRun({
      client,
      sessionId: notebook.id,
      run: submit,
      take,
      server,
      signal: interruption.leave,
    });
    interruption.instead = undefined;
    await screen.finish(run);
    progress.activity = () => 'writing its report and files';
    // After a cancel, written files are still fetched, until another Ctrl-C.
    const signal = interruption.stop.aborted ? interruption.leave : interruption.stop;
    const results = await writeResults(options, notebook, run, { shown, warnings: terminal }, signal);
    return { notebookId: notebook.id, run, files: files(), ...results };
  } finally {
    progress.activity = () => 'closing the session';
    if (keep) {
      if (live.isNew) terminal.err(`the session stays open: SERVICE_SESSION_ID=${notebook.id}\n`);
    } else if (interruption.leave.aborted || server.hasGivenUp) {
      if (live.isNew && !isLeftRunning)
        terminal.err(`the session ends by itself after its run: SERVICE_SESSION_ID=${notebook.id}\n`);
    } else if (!isLeftRunning) await live.close(interruption.leave);
  }
}

/** The notebook to run. */
interface FoundNotebook {
  readonly notebook: Notebook;
  /** Whether this command has made it. */
  readonly isNew: boolean;
  /** Whether it is deleted after the run. */
  readonly isTemporary: boolean;
  /** Whether an open session of the notebook may be used. */
  readonly usesSession: boolean;
  /** The file that equals the notebook; undefined when the notebook was named by its id. */
  readonly file: LocalNotebook | undefined;
  /** How the notebook was found or made, in words. */
  readonly how?: string;
}

async function findNotebook(options: RunNotebookOptions, terminal: Terminal): Promise<FoundNotebook> {
  const { client, cwd, interruption, file, notebookId } = options;
  if (file !== undefined && notebookId !== undefined) {
    throw new CommandFailure('Give a file or --notebook, not both.', EXIT.usage);
  }
  const isId = file !== undefined && /^nb_\w+$/.test(file) && !existsSync(resolve(cwd, file));
  const id = notebookId ?? (isId ? file : undefined);
  if (id !== undefined) {
    const notebook = await client.notebooks.get(id, { signal: interruption.stop });
    return { notebook, isNew: false, isTemporary: false, usesSession: true, file: undefined };
  }
  if (file === undefined) {
    throw new CommandFailure('Name a notebook file, or use --notebook <id>.', EXIT.usage);
  }
  const content = { ...readNotebookFile(file, cwd), ...(options.install ? { install: true } : {}) };
  if (!options.remove)
    return options.links.exclusively(file, () => notebookOfFile(options, file, content, terminal));
  const title = titleOfFile(file, content);
  const notebook = await client.notebooks.import({ ...content, title }, { signal: interruption.leave });
  for (const text of importWarnings(file, notebook)) terminal.err(`${text}\n`);
  const how = `imported ${file} as ${notebook.id}`;
  return { notebook, isNew: true, isTemporary: true, usesSession: false, file: content, how };
}

/** How often a file is compared again when its notebook was changed or opened in the meantime. */
const MAX_TRIES = 3;

/** Returns a notebook with the code of the file: the notebook to which the file was pushed before, a new notebook, or a copy. */
async function notebookOfFile(
  options: RunNotebookOptions,
  file: string,
  content: LocalNotebook,
  terminal: Terminal,
): Promise<FoundNotebook> {
  const { client, cwd, links, interruption, force, theirs } = options;
  const signal = interruption.leave;
  const context = { client, cwd, links, warn: (text: string) => terminal.err(`${text}\n`), signal };
  const found = { isNew: false, isTemporary: false, usesSession: false, file: content };
  for (let tries = 1; ; tries++) {
    const target = await targetOfRun(context, file, content);
    const session = target && (await openSessionOf(client, target.notebook.id, signal));
    if (target !== undefined && session !== undefined) {
      const { notebook, isEqual } = target;
      const why = isEqual || theirs ? undefined : `A session with other code is open on ${notebook.id}`;
      const reason = why ?? whyUnusable(session, options.arguments) ?? whyNotFree(session);
      if (reason !== undefined) return copyOf(options, { ...found, notebook }, `${reason}.`);
      return { ...found, notebook, usesSession: true, how: `${file} is open as ${notebook.id}` };
    }
    if (target !== undefined && theirs)
      return { ...found, notebook: target.notebook, how: `running ${target.notebook.id} as it is there` };
    try {
      const advice = '--theirs runs it as it is on the server; ';
      const { notebook, outcome } = await pushFile(context, file, content, { force, advice });
      const how = `${HOW[outcome]} ${file} as ${notebook.id}`;
      return { ...found, notebook, isNew: outcome === 'created', how };
    } catch (error) {
      const isOther =
        error instanceof ApiError && ['session_open', 'stale_update'].includes(error.code ?? '');
      if (!isOther || tries === MAX_TRIES) throw error;
    }
  }
}

/** Returns the notebook with the datasources of the command. Throws `SessionTaken` when an open session lacks them. */
async function withChosenDatasources(
  { client, datasources }: RunNotebookOptions,
  notebook: Notebook,
): Promise<Notebook> {
  try {
    return await withDatasources(client, notebook, datasources);
  } catch (error) {
    if (error instanceof ApiError && error.code === 'session_open')
      throw new SessionTaken(notebook.id, 'A session without these datasources is open on the notebook');
    throw error;
  }
}

const HOW = { created: 'imported', updated: 'updated', same: 'found' } as const;

/** Returns why a session cannot take a run now; undefined when it can. */
function whyNotFree({ status, notebookId }: NotebookSession): string | undefined {
  return status === 'ready' ? undefined : `A session on ${notebookId} is ${status}`;
}

/** Returns a copy of a notebook for one run, with its datasources, variables and secrets. The copy is deleted after the run. */
async function copyOf(
  { client, interruption: { leave: signal } }: RunNotebookOptions,
  { notebook, file }: Pick<FoundNotebook, 'notebook' | 'file'>,
  why: string,
): Promise<FoundNotebook> {
  const { id, title, serialization } = notebook;
  const named = title === null ? {} : { title };
  const marks = { metadata: { [COPY_OF]: id }, settingsFrom: id };
  const source = file ?? ({ format: 'py', content: '' } as const);
  const made = await client.notebooks.import({ ...source, ...named, ...marks }, { signal });
  const expectedUpdatedAt = made.updatedAt;
  // A copy of a notebook that was named by its id keeps the ids of the cells.
  const copy =
    file === undefined
      ? await client.notebooks.update(made.id, { expectedUpdatedAt, serialization }, { signal })
      : made;
  const how = `${why} This run has a copy of its own, ${copy.id}, which is deleted afterwards.`;
  return { notebook: copy, isNew: true, isTemporary: true, usesSession: false, file, how };
}

/** Returns the result of `attempt`. When it throws, runs `undo` and throws the error. */
async function orElse<T>(attempt: () => T, undo: () => Promise<void>): Promise<T> {
  try {
    return attempt();
  } catch (error) {
    await undo();
    throw error;
  }
}

/** Returns the text that says how to follow or end a run that continues without the command. */
function goesOnText(runId: string, endsAfterIt: boolean): string {
  const end = endsAfterIt ? ' Its session ends by itself after the run.' : '';
  return `${runId} continues.${end}\nfollow it: troupe runs tail ${runId}\nend it: troupe runs cancel ${runId}\n`;
}

/** The hint is shown when a run has taken this long. */
const HINT_AFTER_MS = 10_000;

/** Returns a function for the hint which key leaves the run running. The function returns an empty text until the run has taken long. */
function quitHint({ onQuit, isTerminal }: Input): () => string {
  const since = performance.now();
  return () =>
    onQuit !== undefined && isTerminal && performance.now() - since > HINT_AFTER_MS
      ? '  (Ctrl-\\ leaves it running)'
      : '';
}

function openedText({ isNew, session }: CommandSession): string {
  const { totalMs } = session.phases;
  if (!isNew) return 'using the open session';
  return `kernel ready${totalMs === undefined ? '' : ` in ${shortDuration(totalMs)}`}`;
}

function muted(terminal: Terminal): Terminal {
  return { ...terminal, out: () => {}, err: () => {}, printed: () => {} };
}
