import { Argument, InvalidArgumentError, Option } from 'commander';
import { readServiceAccess } from '#src/base/config/service-access.ts';
import type { Client } from '#src/contract/client/client.ts';
import { ALL_RUN_STATUSES } from '#src/contract/client/runs.ts';
import type { Notebook } from '#src/contract/wire/notebook.ts';
import type { Run, RunStatus } from '#src/contract/wire/run.ts';
import { collect } from '../collect.ts';
import type { CommandGroup } from '../command-group.ts';
import { examples } from '../examples.ts';
import { CommandEnd, EXIT } from '../exit-code.ts';
import { metadataFilterOption } from '../metadata-option.ts';
import { exitCodeOfRun, followRun, hasEnded } from '../run/follow-run.ts';
import { Interruption } from '../run/interruption.ts';
import { LiveLine } from '../run/live-line.ts';
import type { RunScreen } from '../run/run-screen.ts';
import { outputDirectory, runScreen } from '../run/run-show.ts';
import { ServerReturn } from '../run/server-return.ts';
import { unlessRefused } from '../run/unless-refused.ts';
import { shortDuration } from '../show/duration.ts';
import { type ListColumn, printJson, printJsonLine, printList } from '../terminal.ts';

const COLUMNS: readonly ListColumn<Run>[] = [
  { title: 'id', of: ({ id }) => id },
  { title: 'status', of: ({ status, stale }) => (stale === true ? 'lost' : status) },
  { title: 'created', of: ({ createdAt }) => createdAt },
  { title: 'took', of: tookText },
  { title: 'by', of: ({ createdBy }) => createdBy ?? null },
  { title: 'error', of: ({ error }) => error?.message.split('\n')[0] ?? null },
];

const WORKSPACE_COLUMNS: readonly ListColumn<Run>[] = [
  ...COLUMNS.slice(0, 2),
  { title: 'session', of: ({ sessionId }) => sessionId },
  ...COLUMNS.slice(2),
];

interface ListOptions {
  readonly all?: boolean;
  readonly status?: readonly RunStatus[];
  readonly by?: string;
  readonly finishedAfter?: string;
  readonly finishedBefore?: string;
  readonly limit: number;
  readonly metadata?: string;
}

/** `troupe runs`: the runs of sessions and their outputs. */
export const runCommands: CommandGroup = (program, context) => {
  const { terminal, cwd, connect, wantsJson } = context;
  const group = program.command('runs').description('executions of notebooks, and their results');
  const list = group
    .command('list')
    .description(
      'list the runs of a session, oldest first, or the newest runs of the workspace. The session may be closed.',
    )
    .addArgument(
      new Argument('[session]', 'id of the session (default: SERVICE_SESSION_ID, else all sessions)'),
    )
    .option('--all', 'the runs of all sessions, even if SERVICE_SESSION_ID is set')
    .addOption(
      new Option(
        '--status <status>',
        `only runs with one of these statuses, such as completed,failed`,
      ).argParser(statusesOf),
    )
    .option('--by <user>', 'only runs that this user has submitted')
    .option(
      '--finished-after <time>',
      'only runs that ended at this time (RFC 3339) or later, in the order of their ends',
    )
    .option(
      '--finished-before <time>',
      'only runs that ended before this time (RFC 3339), in the order of their ends',
    )
    .addOption(metadataFilterOption())
    .addOption(
      new Option('--limit <count>', 'how many runs of the workspace to list').default(50).argParser(countOf),
    )
    .action(async (id: string | undefined, { all, limit, by, ...options }: ListOptions, command) => {
      const client = connect(command);
      const filters = { ...options, createdBy: by };
      const sessionId = all === true ? undefined : (id ?? readServiceAccess(context.env).sessionId);
      const found =
        sessionId === undefined
          ? await collect(
              firstOf(client.runs.each({ ...filters, order: 'desc', limit: Math.min(limit, 100) }), limit),
            )
          : await collect(client.runs.each({ ...filters, sessionId }));
      printList(terminal, found, sessionId === undefined ? WORKSPACE_COLUMNS : COLUMNS, wantsJson(command));
    });
  examples(list, [
    'troupe runs list nb_01…',
    'troupe runs list --all --status failed',
    'troupe runs list --metadata ticket=7',
    'troupe runs list --all --by ada --finished-after 2026-06-01T00:00:00Z',
    'troupe runs list --json | jq -r \'.[] | select(.status == "failed") | .id\'',
  ]);

  const show = group
    .command('show')
    .description('show a run and its saved output')
    .argument('<run>', 'id of the run')
    .option('--output-dir <directory>', 'directory to save its images in')
    .action(async (runId: string, options: { outputDir?: string }, command) => {
      const client = connect(command);
      const run = await client.runs.get(runId);
      if (wantsJson(command)) return printJson(terminal, run);
      const { outputDir } = options;
      const directory = outputDir === undefined ? undefined : outputDirectory(cwd, outputDir, runId);
      const { screen } = runScreen({
        terminal,
        client,
        cwd,
        directory,
        runId: () => runId,
        sessionId: () => run.sessionId,
      });
      await nameCells(client, run, screen);
      await screen.finish(run);
    });
  examples(show, ['troupe runs show run_01…', 'troupe runs show run_01… --output-dir plots']);

  const cancel = group
    .command('cancel')
    .description('cancel a run, and wait until it has ended')
    .argument('<run>', 'id of the run')
    .option('--no-wait', 'return as soon as the server has accepted the request')
    .action(async (runId: string, { wait }: { wait: boolean }, command) => {
      const client = connect(command);
      const accepted = await client.runs.cancel(runId);
      const run = wait ? await client.waitForRun(runId) : undefined;
      if (wantsJson(command)) printJson(terminal, run ?? accepted);
      else terminal.out(`${runId} is ${run?.status ?? 'being cancelled'}.\n`);
    });
  examples(cancel, ['troupe runs cancel run_01…']);

  const deleting = group
    .command('delete')
    .description('delete runs that have ended, with their outputs')
    .argument('<run...>', 'ids of the runs')
    .action(async (ids: readonly string[], _, command) => {
      const client = connect(command);
      for (const id of ids) {
        await client.runs.delete(id);
        if (!wantsJson(command)) terminal.out(`${id} is deleted.\n`);
      }
      if (wantsJson(command)) {
        printJson(
          terminal,
          ids.map((id) => ({ id, deleted: true })),
        );
      }
    });
  examples(deleting, ['troupe runs delete run_01…']);

  const tail = group
    .command('tail')
    .description(
      'follow a run until it ends; the exit code tells how the run ended. Ctrl-C ends the command, but not the run',
    )
    .argument('<run>', 'id of the run')
    .option('--output-dir <directory>', 'directory for images (default: troupe-output/<run>)')
    .action(async (runId: string, options: { outputDir?: string }, command) => {
      const client = connect(command);
      const json = wantsJson(command);
      const interruption = new Interruption(context.input);
      const directory = outputDirectory(cwd, options.outputDir, runId);
      const line = new LiveLine(terminal, () => screen.activity);
      let sessionId = '';
      const server = new ServerReturn({
        say: (text) => (json ? undefined : line.terminal.err(`${text}\n`)),
      });
      const { screen } = runScreen({
        terminal: line.terminal,
        client,
        cwd,
        directory,
        runId: () => runId,
        sessionId: () => sessionId,
      });
      try {
        const signal = interruption.stop;
        const first = await client.runs.get(runId, { signal });
        sessionId = first.sessionId;
        if (hasEnded(first) && !json) await nameCells(client, first, screen);
        const run = hasEnded(first)
          ? first
          : await followRun({
              client,
              sessionId: first.sessionId,
              run: runId,
              take: async (event) => {
                if (!json) await screen.take(event, runId);
                else if (event.runId === runId) printJsonLine(terminal, event);
              },
              server,
              signal,
            });
        if (json) printJsonLine(terminal, { type: 'run', sessionId: run.sessionId, runId, data: run });
        else await screen.finish(run);
        const exitCode = exitCodeOfRun(run);
        if (exitCode !== EXIT.ok) throw new CommandEnd(exitCode);
      } finally {
        line[Symbol.dispose]();
        interruption[Symbol.dispose]();
      }
    });
  examples(tail, ['troupe runs tail run_01…', 'troupe runs tail run_01… --json']);
};

/**
 * Lets the screen show cells by their names. A job runs a copy, which is gone after the run and had the cells of the job's notebook. If the
 * caller cannot read the notebook, cells are shown by their ids.
 */
async function nameCells(client: Client, run: Run, screen: RunScreen): Promise<void> {
  if (run.kind !== 'notebook') return;
  const notebook =
    (await unlessRefused(client.notebooks.get(run.sessionId))) ?? (await notebookOfJob(client, run));
  if (notebook !== undefined) screen.nameCells(notebook);
}

async function notebookOfJob(client: Client, { metadata }: Run): Promise<Notebook | undefined> {
  const job = metadata?.job === undefined ? undefined : await unlessRefused(client.jobs.get(metadata.job));
  if (job === undefined || 'prompt' in job.target) return undefined;
  return unlessRefused(client.notebooks.get(job.target.notebookId));
}

function tookText({ startedAt, finishedAt }: Run): string | null {
  if (startedAt === null || finishedAt === null) return null;
  return shortDuration(Date.parse(finishedAt) - Date.parse(startedAt));
}

/** Yields the first `count` items. */
async function* firstOf<T>(items: AsyncIterable<T>, count: number): AsyncGenerator<T> {
  let left = count;
  for await (const item of items) {
    yield item;
    if (--left === 0) return;
  }
}

function statusesOf(text: string): readonly RunStatus[] {
  const statuses = text.split(',').map((word) => ALL_RUN_STATUSES.find((status) => status === word));
  if (statuses.every((status) => status !== undefined)) return statuses;
  throw new InvalidArgumentError(`Allowed choices are ${ALL_RUN_STATUSES.join(', ')}.`);
}

function countOf(text: string): number {
  if (/^[1-9]\d{0,5}$/.test(text)) return Number(text);
  throw new InvalidArgumentError('It must be a whole number of at least 1.');
}
