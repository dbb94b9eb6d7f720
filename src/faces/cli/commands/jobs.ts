import { existsSync } from 'node:fs';
import { resolve } from 'node:path';
import { type Command, InvalidArgumentError, Option } from 'commander';
import type { Client } from '#src/contract/client/client.ts';
import { newKey } from '#src/contract/client/connection.ts';
import type { Job, NewJob, Occurrence, Schedule } from '#src/contract/wire/job.ts';
import { collect } from '../collect.ts';
import type { CliContext, CommandGroup } from '../command-group.ts';
import { examples } from '../examples.ts';
import { CommandEnd, CommandFailure, EXIT } from '../exit-code.ts';
import { metadataOption } from '../metadata-option.ts';
import { writePlain } from '../plain-path.ts';
import { cellIdsOf } from '../run/cell-selection.ts';
import { exitCodeOfOccurrence, followOccurrence } from '../run/follow-occurrence.ts';
import { Interruption } from '../run/interruption.ts';
import { LiveLine } from '../run/live-line.ts';
import { jobNamed, notebookNamed } from '../run/named-objects.ts';
import { argumentsOf, parameterOption, refuseUnreached } from '../run/notebook-arguments.ts';
import { readNotebookFile } from '../run/notebook-file.ts';
import { pushFile, syncContextOf } from '../run/notebook-sync.ts';
import { outputDirectory, runScreen } from '../run/run-show.ts';
import { ServerReturn } from '../run/server-return.ts';
import { timeoutOption } from '../run/timeout-option.ts';
import { unlessRefused } from '../run/unless-refused.ts';
import { instantLines, jobText, occurrenceColumns, reasonLine, scheduleText } from '../show/job.ts';
import { styleOf } from '../style.ts';
import { type ListColumn, printJson, printList } from '../terminal.ts';

const COLUMNS: readonly ListColumn<Job>[] = [
  { title: 'id', of: ({ id }) => id },
  { title: 'name', of: ({ name }) => name },
  {
    title: 'target',
    of: ({ target }) => ('prompt' in target ? target.agentSessionId : target.notebookId),
  },
  { title: 'schedule', of: scheduleText },
  { title: 'status', of: ({ status }) => status },
  { title: 'failures', of: ({ failures }) => String(failures) },
  { title: 'next', of: ({ next }) => next[0] ?? null },
  { title: 'reason', of: ({ reason }) => reasonLine(reason) },
];

/** How many occurrences `troupe jobs show` shows. */
const SHOWN = 5;

interface ScheduleOptions {
  readonly cron?: string;
  readonly every?: number;
  readonly at?: string;
  readonly timeZone?: string;
}

interface CreateOptions extends ScheduleOptions {
  readonly name?: string;
  readonly cells?: readonly string[];
  readonly parameter: readonly string[];
  readonly timeout?: number;
  readonly retries?: number;
  readonly catchUp?: 'last' | 'none' | 'all';
  readonly overlap?: 'skip' | 'queue' | 'cancel';
  readonly retryOn?: 'server' | 'all';
  readonly openSession?: boolean;
  readonly prompt?: string;
  readonly metadata?: Readonly<Record<string, string>>;
  readonly report?: boolean;
  readonly paused?: boolean;
  readonly force?: boolean;
  readonly preview?: boolean;
}

/** `troupe jobs`: notebooks that run by a schedule. */
export const jobs: CommandGroup = (program, context) => {
  const { terminal, connect, wantsJson } = context;
  const group = program.command('jobs').description('notebooks that run by a schedule');
  addCreation(group, context);

  const list = group
    .command('list')
    .description('list the jobs, oldest first')
    .action(async (_, command) => {
      printList(terminal, await collect(connect(command).jobs.each()), COLUMNS, wantsJson(command));
    });
  examples(list, [
    'troupe jobs list',
    'troupe jobs list --json | jq -r \'.[] | select(.status == "paused") | .id\'',
  ]);

  const show = group
    .command('show')
    .description('show a job: its next instants, why it is paused or fails, and its last occurrences')
    .argument('<job>', 'id or name of the job')
    .action(async (name: string, _, command) => {
      const client = connect(command);
      const jobId = await jobNamed(client, name);
      const job = await client.jobs.get(jobId);
      const { items } = await client.jobs.occurrences(jobId, { order: 'desc', limit: SHOWN });
      if (wantsJson(command)) printJson(terminal, { ...job, occurrences: items });
      else terminal.out(jobText(job, items, styleOf(terminal.color), terminal.color));
    });
  examples(show, ['troupe jobs show job_01…']);

  const history = group
    .command('history')
    .description('list the occurrences of a job, newest first: what ran, failed, or was skipped and why')
    .argument('<job>', 'id or name of the job')
    .addOption(new Option('--limit <count>', 'how many to list').default(20).argParser(countOf))
    .action(async (name: string, { limit }: { limit: number }, command) => {
      const client = connect(command);
      const jobId = await jobNamed(client, name);
      const found: Occurrence[] = [];
      const page = { order: 'desc', limit: Math.min(limit, 100) } as const;
      for await (const occurrence of client.jobs.eachOccurrence(jobId, page)) {
        found.push(occurrence);
        if (found.length === limit) break;
      }
      const json = wantsJson(command);
      const timeZone = json ? 'UTC' : (await client.jobs.get(jobId)).timeZone;
      printList(terminal, found, occurrenceColumns(timeZone), json);
    });
  examples(history, [
    'troupe jobs history job_01…',
    'troupe jobs history job_01… --limit 1000 --json | jq \'.[] | select(.status == "failed")\'',
    "troupe runs show $(troupe jobs history job_01… --limit 1 --json | jq -r '.[0].runId')",
  ]);

  const report = group
    .command('report')
    .description('write the page of the last run of a job to a file; for jobs that were made with --report')
    .argument('<job>', 'id or name of the job')
    .option('--occurrence <id>', 'the occurrence whose page is written (default: the last one with a page)')
    .option('-o, --output <file>', 'file to write (default: <job>.html)')
    .action((jobId: string, options: ReportOptions, command) =>
      writeReport(jobId, options, command, context),
    );
  examples(report, ['troupe jobs report job_01… -o today.html']);

  const run = group
    .command('run')
    .description(
      'fire a job now, also while it is paused, and wait for its end; the exit code tells how the run ended. Ctrl-C ends the ' +
        'command, but not the run. If the server stops meanwhile, the command waits up to a minute for it, and the server attempts ' +
        'the occurrence again.',
    )
    .argument('<job>', 'id or name of the job')
    .option('--detach', 'print the id of the occurrence, and return while it continues')
    .option('--output-dir <directory>', 'directory for images (default: troupe-output/<run>)')
    .action((jobId: string, options: { detach?: boolean; outputDir?: string }, command) =>
      fire(jobId, options, command, context),
    );
  examples(run, ['troupe jobs run job_01…', "troupe jobs run 'Sales of a day' --detach"]);

  const change = async (
    name: string,
    members: { readonly paused: boolean; readonly takeOver?: true },
    command: Command,
  ) => {
    const client = connect(command);
    const jobId = await jobNamed(client, name);
    const { updatedAt: expectedUpdatedAt } = await client.jobs.get(jobId);
    const job = await client.jobs.update(jobId, { expectedUpdatedAt, ...members });
    if (wantsJson(command)) printJson(terminal, job);
    else if (members.paused) terminal.out(`${jobId} is paused.\n`);
    else terminal.out(`${jobId} is ${job.status}.\n${instantLines(job.next, job.timeZone)}`);
  };
  const pausing = group
    .command('pause')
    .description('pause a job: it fires only when a person fires it. An occurrence in progress is finished')
    .argument('<job>', 'id or name of the job')
    .action((jobId: string, _, command) => change(jobId, { paused: true }, command));
  examples(pausing, ['troupe jobs pause job_01…']);

  const resume = group
    .command('resume')
    .description('resume a job, beginning with its next instant after now')
    .argument('<job>', 'id or name of the job')
    .option(
      '--take-over',
      'make you the owner of the job, which then works with your rights; for owners of the workspace',
    )
    .action((jobId: string, { takeOver }: { takeOver?: boolean }, command) =>
      change(jobId, { paused: false, ...(takeOver === true ? { takeOver } : {}) }, command),
    );
  examples(resume, ['troupe jobs resume job_01…', 'troupe jobs resume job_01… --take-over']);

  const deleting = group
    .command('delete')
    .description(
      'delete jobs with their history; their runs stay. Refused while an occurrence is in progress',
    )
    .argument('<job...>', 'ids or names of the jobs')
    .action(async (names: readonly string[], _, command) => {
      const client = connect(command);
      // A wrong name is refused before anything is deleted.
      const ids: string[] = [];
      for (const name of names) ids.push(await jobNamed(client, name));
      for (const id of ids) {
        await client.jobs.delete(id);
        if (!wantsJson(command)) terminal.out(`${id} is deleted.\n`);
      }
      if (wantsJson(command))
        printJson(
          terminal,
          ids.map((id) => ({ id, deleted: true })),
        );
    });
  examples(deleting, ['troupe jobs delete job_01…']);
};

function addCreation(group: Command, context: CliContext): void {
  const { terminal, passedOn, connect, wantsJson } = context;
  const create = group
    .command('create')
    .description(
      'create a job, print its id, and show its next five instants. The job runs the notebook as it is at each instant, on a copy of ' +
        'its own, with your rights. A file is first pushed to its notebook; if the notebook has changes that the file does not have, ' +
        'no job is made.',
    )
    .argument('<notebook>', 'title or id of the notebook, or its file (.py, .ipynb, .md)')
    .argument('[arguments...]', 'after --: arguments of the notebook, as marimo passes them on')
    .option(
      '--cron <expression>',
      "minute, hour, day of the month, month, day of the week, such as '0 7 * * MON'; or @hourly, @daily, @weekly, @monthly, @yearly",
    )
    .addOption(new Option('--every <interval>', 'an interval: 90s, 15m, 6h, 7d').argParser(intervalOf))
    .option('--at <time>', 'one instant (RFC 3339), such as 2027-01-01T07:00:00+01:00')
    .option(
      '--time-zone <zone>',
      'time zone of --cron, such as Europe/Berlin (default: the zone of this machine)',
    )
    .option('--name <text>', 'a name for people')
    .option('--cells <list>', 'run only these cells: ids or names, separated by commas', splitList)
    .addOption(parameterOption())
    .addOption(timeoutOption())
    .addOption(
      new Option(
        '--retries <count>',
        'how often an occurrence is repeated whose end was not the fault of the notebook (default: 2)',
      ).argParser(retriesOf),
    )
    .addOption(
      new Option(
        '--catch-up <how>',
        'what fires after a stop of the server: the last missed instant, none, or all up to a hundred (default: last)',
      ).choices(['last', 'none', 'all']),
    )
    .addOption(
      new Option(
        '--overlap <how>',
        'what happens with an instant during an occurrence: it is skipped, waits, or cancels the occurrence (default: skip)',
      ).choices(['skip', 'queue', 'cancel']),
    )
    .addOption(
      new Option(
        '--retry-on <what>',
        'which ends are repeated: those that are not the fault of the notebook, or all failures (default: server)',
      ).choices(['server', 'all']),
    )
    .option(
      '--open-session',
      'run on the open session of the notebook; skipped when there is none, or it is busy',
    )
    .option(
      '--prompt <text>',
      'prompt a conversation with an agent, whose id is given in place of the notebook',
    )
    .addOption(metadataOption('job and its runs'))
    .option('--report', 'keep each run as a page, which `troupe jobs report` writes to a file')
    .option('--paused', 'create the job paused')
    .option('--force', 'replace the notebook of the file even if it has changes that the file does not have')
    .option('--preview', 'show the next five instants, and create nothing')
    .action(async (name: string, _arguments: readonly string[], options: CreateOptions, command: Command) => {
      const client = connect(command);
      const schedule = scheduleOf(options);
      const timeZone = options.timeZone ?? Intl.DateTimeFormat().resolvedOptions().timeZone;
      // A wrong schedule is refused before a file is pushed.
      const { next } = await client.jobs.preview(schedule, timeZone);
      if (options.preview === true) {
        if (wantsJson(command)) printJson(terminal, { next });
        else terminal.out(instantLines(next, timeZone));
        return;
      }
      const { parameter, timeout, retries, retryOn, catchUp, overlap, metadata, report, paused } = options;
      const target = await targetOf(client, name, options, context, command);
      const job = await client.jobs.create({
        target,
        schedule,
        timeZone,
        arguments: [...(argumentsOf(parameter, passedOn) ?? [])],
        ...(options.name === undefined ? {} : { name: options.name }),
        ...(timeout === undefined ? {} : { timeoutS: timeout }),
        ...(retries === undefined ? {} : { retries }),
        ...(retryOn === undefined ? {} : { retryOn }),
        ...(catchUp === undefined ? {} : { catchUp }),
        ...(overlap === undefined ? {} : { overlap }),
        ...(metadata === undefined ? {} : { metadata }),
        ...(report === true ? { outputs: ['html'] } : {}),
        ...(paused === true ? { paused } : {}),
      });
      if (wantsJson(command)) return printJson(terminal, job);
      terminal.out(`${job.id}\n`);
      terminal.err(paused === true ? 'paused\n' : instantLines(job.next, timeZone));
    });
  examples(create, [
    "troupe jobs create report.py --cron '0 7 * * MON' --time-zone Europe/Berlin",
    "troupe jobs create 'Sales of a month' --cron @monthly -p region=eu --name 'Monthly sales'",
    'troupe jobs create nb_01… --every 15m --timeout 600',
    "troupe jobs create conv_01… --prompt 'Summarise the news of the day.' --cron @daily",
    'troupe jobs create nb_01… --at 2027-01-01T07:00:00+01:00',
    "troupe jobs create report.py --cron '0 7 * * MON' --preview",
  ]);
}

/** Returns the target of the options. Throws `CommandFailure` for cells and parameters that the notebook does not have. */
async function targetOf(
  client: Client,
  name: string,
  options: CreateOptions,
  context: CliContext,
  command: Command,
): Promise<NewJob['target']> {
  const { cells: asked, parameter, openSession, prompt } = options;
  if (prompt !== undefined) {
    if (asked !== undefined || parameter.length > 0 || openSession === true)
      throw new CommandFailure('A prompt has no cells, parameters or open session.', EXIT.usage);
    if (!/^conv_\w+$/.test(name))
      throw new CommandFailure(
        `A prompt needs the id of a conversation in place of ${name}: troupe agent list shows the ids.`,
        EXIT.usage,
      );
    return { agentSessionId: name, prompt };
  }
  const notebookId = await notebookOf(client, name, options, context, command);
  const needsCells = asked !== undefined || parameter.length > 0;
  const notebook = needsCells ? await client.notebooks.get(notebookId) : undefined;
  refuseUnreached(parameter, notebook?.serialization.cells.map(({ code }) => code) ?? []);
  const cells = asked && notebook && cellIdsOf(notebook, asked);
  return {
    notebookId,
    ...(cells === undefined ? {} : { cells: [...cells] }),
    ...(openSession === true ? { session: 'open' } : {}),
  };
}

/** Returns the id of the notebook that an id, a title or a file names. A file that exists is pushed. */
async function notebookOf(
  client: Client,
  name: string,
  { force }: CreateOptions,
  context: CliContext,
  command: Command,
): Promise<string> {
  const isFile = !/^nb_\w+$/.test(name) && existsSync(resolve(context.cwd, name));
  if (!isFile) return notebookNamed(client, name, context, command);
  const file = readNotebookFile(name, context.cwd);
  const { notebook, outcome } = await pushFile(syncContextOf(context, command), name, file, {
    force: force === true,
  });
  if (!context.wantsJson(command)) context.terminal.err(`${HOW[outcome]} ${name} as ${notebook.id}\n`);
  return notebook.id;
}

const HOW = { created: 'imported', updated: 'updated', same: 'found' } as const;

interface ReportOptions {
  readonly occurrence?: string;
  readonly output?: string;
}

/** Writes the page of an occurrence to a file. Throws `CommandFailure` when there is none. */
async function writeReport(
  name: string,
  { occurrence: wanted, output: asked }: ReportOptions,
  command: Command,
  { terminal, cwd, connect, wantsJson }: CliContext,
): Promise<void> {
  const client = connect(command);
  const jobId = await jobNamed(client, name);
  const output = asked ?? `${jobId}.html`;
  let found: Occurrence | undefined;
  for await (const occurrence of client.jobs.eachOccurrence(jobId, { order: 'desc', limit: 100 }))
    if (wanted === undefined ? occurrence.report?.url != null : occurrence.id === wanted) {
      found = occurrence;
      break;
    }
  const page = found && (await client.jobs.report(found));
  if (page === undefined) throw new CommandFailure(noReport(jobId, wanted, found), EXIT.failed);
  const { bytes } = page;
  writePlain(output, cwd, bytes);
  if (wantsJson(command))
    printJson(terminal, { occurrence: found, path: resolve(cwd, output), bytes: bytes.length });
  else terminal.err(`${output}: ${bytes.length} bytes\n`);
}

function noReport(jobId: string, wanted: string | undefined, found: Occurrence | undefined): string {
  if (wanted !== undefined && found === undefined) return `The job has no occurrence ${wanted}.`;
  const reason = found?.report?.reason?.message;
  if (reason !== undefined) return `The occurrence has no page. ${reason}`;
  return wanted === undefined
    ? `No occurrence of ${jobId} has a page. Jobs that were made with --report have one soon after each run.`
    : 'The occurrence has no page. Jobs that were made with --report have one soon after each run.';
}

/** Fires a job, and waits for the end of the occurrence unless the command is detached. */
async function fire(
  name: string,
  { detach, outputDir }: { readonly detach?: boolean; readonly outputDir?: string },
  command: Command,
  { terminal, input, cwd, connect, wantsJson }: CliContext,
): Promise<void> {
  const client = connect(command);
  const jobId = await jobNamed(client, name);
  const json = wantsJson(command);
  using interruption = new Interruption(input);
  let activity = 'firing the job';
  using line = new LiveLine(terminal, () => activity);
  const say = (text: string) => {
    activity = text;
    if (!json) line.terminal.err(`${text}\n`);
  };
  const signal = interruption.stop;
  const server = new ServerReturn({ say: (text) => json || line.terminal.err(`${text}\n`) });
  const idempotencyKey = newKey(); // a repetition after a lost answer must not fire the job again
  const fired = await server.attempt(() => client.jobs.run(jobId, { idempotencyKey, signal }), signal);
  if (detach === true) {
    if (json) printJson(line.terminal, fired);
    else line.terminal.out(`${fired.id}\n`);
    return;
  }
  const occurrence = await followOccurrence({ client, occurrence: fired, say, server, signal });
  const { runId, status, reason } = occurrence;
  const ended = runId === null ? undefined : await client.runs.get(runId, { signal });
  if (json) printJson(line.terminal, { occurrence, run: ended ?? null });
  else if (ended === undefined) terminal.err(`${status}: ${reason?.message ?? 'the reason is unknown'}\n`);
  else {
    const directory = outputDirectory(cwd, outputDir, ended.id);
    const { screen } = runScreen({
      terminal: line.terminal,
      client,
      cwd,
      directory,
      runId: () => ended.id,
      sessionId: () => ended.sessionId,
    });
    // The copy that has run is gone. Its cells have the ids of the notebook.
    const { target } = await client.jobs.get(jobId, { signal });
    const notebook =
      'prompt' in target
        ? undefined
        : await unlessRefused(client.notebooks.get(target.notebookId, { signal }));
    if (notebook !== undefined) screen.nameCells(notebook);
    await screen.finish(ended);
  }
  const exitCode = exitCodeOfOccurrence(occurrence);
  if (exitCode !== EXIT.ok) throw new CommandEnd(exitCode);
}

/** Returns the schedule of the options. Throws `CommandFailure` unless there is exactly one. */
function scheduleOf({ cron, every, at }: ScheduleOptions): Schedule {
  const [schedule, another] = [
    ...(cron === undefined ? [] : [{ cron }]),
    ...(every === undefined ? [] : [{ everyS: every }]),
    ...(at === undefined ? [] : [{ at }]),
  ];
  if (schedule === undefined || another !== undefined)
    throw new CommandFailure('Give exactly one of --cron, --every and --at.', EXIT.usage);
  return schedule;
}

const UNIT_S: Readonly<Record<string, number>> = { s: 1, m: 60, h: 3_600, d: 86_400 };

/** Returns the seconds of an interval such as `15m`. The server knows the longest one. */
function intervalOf(text: string): number {
  const [, count, unit = 's'] = /^([1-9]\d{0,7})([smhd])?$/.exec(text) ?? [];
  if (count === undefined)
    throw new InvalidArgumentError('It must be an interval such as 90s, 15m, 6h or 7d.');
  return Number(count) * (UNIT_S[unit] ?? 1);
}

function retriesOf(text: string): number {
  if (/^\d{1,2}$/.test(text)) return Number(text);
  throw new InvalidArgumentError('It must be a whole number.');
}

function countOf(text: string): number {
  if (/^[1-9]\d{0,3}$/.test(text)) return Number(text);
  throw new InvalidArgumentError('It must be a whole number of at least 1.');
}

function splitList(text: string, before: readonly string[] = []): string[] {
  const words = text.split(',').map((word) => word.trim());
  return [...before, ...words.filter((word) => word !== '')];
}
