import { Option } from 'commander';
import type { NotebookSessionSummary } from '#src/contract/wire/lists.ts';
import type { NotebookSession } from '#src/contract/wire/session.ts';
import { collect } from '../collect.ts';
import type { CommandGroup } from '../command-group.ts';
import { examples } from '../examples.ts';
import { CommandFailure } from '../exit-code.ts';
import { metadataFilterOption, metadataOption } from '../metadata-option.ts';
import { notesOf } from '../run/command-session.ts';
import { argumentsOf, parameterOption } from '../run/notebook-arguments.ts';
import { secondsOf } from '../run/timeout-option.ts';
import { shortDuration } from '../show/duration.ts';
import { eventLine } from '../show/event-line.ts';
import { factLines } from '../show/notebook.ts';
import { styleOf } from '../style.ts';
import { table } from '../table.ts';
import { type ListColumn, printJson, printJsonLine, printList } from '../terminal.ts';
import { chosenSession, sessionArgument } from './session-argument.ts';

interface OpenOptions {
  readonly environment?: string;
  readonly mode: 'edit' | 'run';
  readonly wait: boolean;
  readonly parameter: readonly string[];
  readonly ttl?: number;
  readonly idleTimeout?: number;
  readonly metadata?: Readonly<Record<string, string>>;
}

interface ListOptions {
  readonly all?: boolean;
  readonly title?: string;
  readonly metadata?: string;
}

const COLUMNS: readonly ListColumn<NotebookSessionSummary>[] = [
  { title: 'session', of: ({ sessionId }) => sessionId },
  { title: 'title', of: ({ title }) => title },
  { title: 'status', of: ({ status }) => status },
  { title: 'environment', of: ({ environmentId }) => environmentId },
  { title: 'opened', of: ({ createdAt }) => createdAt },
];

/** `troupe sessions`: opens, lists, shows, follows and closes notebook sessions. */
export const sessions: CommandGroup = (program, context) => {
  const { terminal, connect, wantsJson } = context;
  const group = program.command('sessions').description('open notebooks, each with a running kernel');
  const open = group
    .command('open')
    .description('open a notebook, wait until it is ready, and print the id of the session')
    .argument('<notebook>', 'id of the notebook')
    .option('--environment <id>', 'environment of the session (default: a new one)')
    .addOption(
      new Option('--mode <mode>', 'edit allows changes to the notebook, run does not')
        .choices(['edit', 'run'])
        .default('edit'),
    )
    .addOption(parameterOption())
    .option('--ttl <seconds>', 'close the session after so many seconds, with its environment', secondsOf)
    .option(
      '--idle-timeout <seconds>',
      'close the session when it was not used for so many seconds',
      secondsOf,
    )
    .addOption(metadataOption('session'))
    .option('--no-wait', 'do not wait until the session is ready')
    .action(async (notebookId: string, options: OpenOptions, command) => {
      const { environment, mode, wait, parameter, ttl: ttlS, idleTimeout: idleTimeoutS, metadata } = options;
      const client = connect(command);
      const environmentId = environment ?? (await client.executionEnvironments.create()).environmentId;
      let session = await client.notebookSessions
        .open({
          notebookId,
          environmentId,
          mode,
          arguments: argumentsOf(parameter, []) ?? [],
          ttlS: ttlS ?? null,
          idleTimeoutS: idleTimeoutS ?? null,
          ...(metadata === undefined ? {} : { metadata }),
        })
        .catch(async (error) => {
          if (environment === undefined) await client.executionEnvironments.close(environmentId);
          throw error;
        });
      if (wait)
        session = await client.notebookSessions.waitUntilReady(session.sessionId, {
          startup: ({ text }) => terminal.err(`${text}\n`),
        });
      for (const note of notesOf(session)) terminal.err(`${note}\n`);
      if (wantsJson(command)) printJson(terminal, session);
      else {
        terminal.out(`${session.sessionId}\n`);
        const { totalMs } = session.phases;
        terminal.err(
          `${session.status}${totalMs === undefined ? '' : ` in ${shortDuration(totalMs)}`}, in ${environmentId}\n`,
        );
      }
      if (session.status === 'failed') {
        throw new CommandFailure(
          `The session has failed: ${session.error?.message ?? 'the reason is unknown'}`,
        );
      }
    });
  examples(open, [
    'export SERVICE_SESSION_ID=$(troupe sessions open nb_01…)',
    'troupe sessions open nb_01… --mode run',
    'troupe sessions open nb_01… --idle-timeout 3600 --metadata project=sales',
  ]);

  const list = group
    .command('list')
    .description('list the open sessions, last opened first, without starting a kernel')
    .option('--all', 'also closed sessions')
    .option('--title <text>', 'only notebooks whose title contains the text; case does not matter')
    .addOption(metadataFilterOption())
    .action(async ({ all, title, metadata }: ListOptions, command) => {
      const status = all === true ? undefined : 'open';
      const found = connect(command).notebookSessions.each({ status, title, metadata, order: 'desc' });
      printList(terminal, await collect(found), COLUMNS, wantsJson(command));
    });
  examples(list, [
    'troupe sessions list',
    'troupe sessions list --all --title sales',
    'troupe sessions list --metadata project=sales',
  ]);

  const show = group
    .command('show')
    .description('show a session and its cells')
    .addArgument(sessionArgument())
    .action(async (id: string | undefined, _, command) => {
      const session = await connect(command).notebookSessions.get(chosenSession(id, context));
      if (wantsJson(command)) printJson(terminal, session);
      else terminal.out(sessionText(session, terminal.color));
    });
  examples(show, ['troupe sessions show nb_01…']);

  const close = group
    .command('close')
    .description('close a session: its kernel ends, saved data stays')
    .addArgument(sessionArgument())
    .option('--with-environment', 'also close its environment')
    .action(async (id: string | undefined, options: { withEnvironment?: boolean }, command) => {
      const client = connect(command);
      const session = await client.notebookSessions.close(chosenSession(id, context));
      if (options.withEnvironment === true && session.environmentId !== null) {
        await client.executionEnvironments.close(session.environmentId);
      }
      if (wantsJson(command)) printJson(terminal, session);
      else terminal.out(`${session.sessionId} is closed.\n`);
    });
  examples(close, ['troupe sessions close nb_01… --with-environment']);

  const interrupt = group
    .command('interrupt')
    .description('end the run or the code call that keeps a session busy; the variables of the session stay')
    .addArgument(sessionArgument())
    .action(async (id: string | undefined, _, command) => {
      const interruption = await connect(command).notebookSessions.interrupt(chosenSession(id, context));
      const { sessionId, status, runId } = interruption;
      if (wantsJson(command)) printJson(terminal, interruption);
      else if (status === 'idle') terminal.out(`Nothing runs in ${sessionId}.\n`);
      else terminal.out(`${runId === null ? 'The code is interrupted' : `${runId} is cancelled`}.\n`);
    });
  examples(interrupt, ['troupe sessions interrupt nb_01…']);

  const events = group
    .command('events')
    .description('print the events of a session until it closes: first its state, then live events')
    .addArgument(sessionArgument())
    .option('--live', 'skip the state at the beginning')
    .action(async (id: string | undefined, options: { live?: boolean }, command) => {
      const style = styleOf(terminal.color);
      let isLive = options.live !== true;
      let isOpen = false;
      for await (const event of connect(command).notebookSessions.follow(chosenSession(id, context))) {
        isOpen = true;
        if (event.type === 'session.replayed' && !isLive) isLive = true;
        else if (!isLive) continue;
        else if (wantsJson(command)) printJsonLine(terminal, event);
        else terminal.out(`${eventLine(event, style)}\n`);
      }
      if (!isOpen) terminal.err('The session is closed.\n');
    });
  const ticket = group
    .command('ticket')
    .description('print a path with which a browser can follow a session once, within a minute')
    .addArgument(sessionArgument())
    .action(async (id: string | undefined, _, command) => {
      const issued = await connect(command).notebookSessions.eventTicket(chosenSession(id, context));
      if (wantsJson(command)) printJson(terminal, issued);
      else terminal.out(`${issued.url}\n`);
    });
  examples(ticket, ['troupe sessions ticket nb_01…']);

  examples(events, [
    'troupe sessions events nb_01…',
    'troupe sessions events nb_01… --live --json | jq -c \'select(.type == "run-status")\'',
  ]);
};

/** Returns a session as text: its properties, and the state of its cells. */
function sessionText(session: NotebookSession, color: boolean): string {
  const { sessionId, environmentId, mode, status, phases, currentRunId, error, cells, createdAt } = session;
  const facts = factLines(
    [
      ['session', sessionId],
      ['environment', environmentId ?? '-'],
      ['mode', mode],
      ['status', status],
      ...(currentRunId === null ? [] : [['run', currentRunId]]),
      ...(error === null ? [] : [['error', `${error.message} (${error.code})`]]),
      ...(phases.totalMs === undefined ? [] : [['started in', shortDuration(phases.totalMs)]]),
      ['opened', createdAt],
    ],
    styleOf(color),
  );
  const rows = cells.map((cell) => [cell.cellId, cell.name || '-', cell.status, cell.stale ? 'yes' : 'no']);
  return rows.length === 0 ? facts : `${facts}\n${table(['cell', 'name', 'status', 'stale'], rows, color)}`;
}
