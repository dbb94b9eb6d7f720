import type { Client } from '#src/contract/client/client.ts';
import { newKey } from '#src/contract/client/connection.ts';
import type { AgentSessionSummary } from '#src/contract/wire/agent.ts';
import { ConversationScreen, conversationText } from '../agent/conversation-screen.ts';
import { followPrompt } from '../agent/follow-prompt.ts';
import { collect } from '../collect.ts';
import type { CliContext, CommandGroup } from '../command-group.ts';
import { examples } from '../examples.ts';
import { CommandEnd, CommandFailure, EXIT, type ExitCode } from '../exit-code.ts';
import { exitCodeOfRun } from '../run/follow-run.ts';
import { Interruption } from '../run/interruption.ts';
import { ServerReturn } from '../run/server-return.ts';
import { timeoutOption } from '../run/timeout-option.ts';
import { type ListColumn, printJson, printJsonLine, printList } from '../terminal.ts';

interface PromptOptions {
  readonly timeout?: number;
}

interface NewOptions {
  readonly environment?: string;
  readonly notebook?: string;
  readonly model?: string;
  readonly instructions?: string;
  readonly datasource?: readonly string[];
}

const COLUMNS: readonly ListColumn<AgentSessionSummary>[] = [
  { title: 'conversation', of: ({ sessionId }) => sessionId },
  { title: 'status', of: ({ status }) => status },
  { title: 'model', of: ({ config }) => config.model },
  { title: 'environment', of: ({ environmentId }) => environmentId },
  { title: 'owner', of: ({ ownerId }) => ownerId },
  { title: 'changed', of: ({ updatedAt }) => updatedAt },
];

/** `troupe agent`: conversations with agents. */
export const agent: CommandGroup = (program, context) => {
  const { terminal, connect, wantsJson, input } = context;
  const group = program.command('agent').description('conversations with agents');

  const create = group
    .command('new')
    .description('open a conversation and print its id')
    .option('--environment <id>', "environment (default: the notebook's, or a new one)")
    .option('--notebook <session>', 'notebook session that the agent works in')
    .option('--model <id>', 'model, as provider/model')
    .option('--instructions <text>', 'instructions that precede every prompt')
    .option('--datasource <slug...>', 'datasources that the agent may query')
    .action(async (options: NewOptions, command) => {
      const session = await openConversation(connect(command), options);
      if (wantsJson(command)) return printJson(terminal, session);
      terminal.out(`${session.sessionId}\n`);
      terminal.err(`${session.config.model ?? 'no model yet'}, in ${session.environmentId}\n`);
    });
  examples(create, [
    'troupe agent new --model anthropic/claude-sonnet-4-5',
    'troupe agent new --notebook nb_01… --datasource sales',
  ]);

  const prompt = group
    .command('prompt')
    .description('send a prompt and show the answer; Ctrl-C cancels it, a second Ctrl-C leaves at once')
    .argument('<conversation>', 'id of the conversation')
    .argument('[text]', 'text of the prompt; - or no text reads standard input')
    .addOption(timeoutOption())
    .action(async (sessionId: string, given: string | undefined, { timeout }: PromptOptions, command) => {
      const text = given === undefined || given === '-' ? await input.read() : given;
      if (text.trim() === '') throw new CommandFailure('The prompt is empty.', EXIT.usage);
      const options = { json: wantsJson(command), timeoutS: timeout };
      const exitCode = await ask(context, connect(command), sessionId, text, options);
      if (exitCode !== EXIT.ok) throw new CommandEnd(exitCode);
    });
  examples(prompt, [
    'troupe agent prompt nb_01… "Which month sold best? Add a cell with a chart."',
    'troupe agent prompt conv_01… - < question.md',
    'troupe agent prompt conv_01… "Hello" --json | jq -r \'select(.type == "text-delta").data.text\'',
  ]);

  const chat = group
    .command('chat')
    .description('chat with an agent, one prompt per line, until the input ends')
    .argument('[conversation]', 'id of the conversation (default: a new one)')
    .option('--notebook <session>', 'notebook session for a new conversation')
    .option('--model <id>', 'model of a new conversation, as provider/model')
    .action(async (given: string | undefined, options: NewOptions, command) => {
      const client = connect(command);
      const sessionId = given ?? (await openConversation(client, options)).sessionId;
      if (given === undefined) terminal.err(`${sessionId}\n`);
      for await (const line of input.lines(() => terminal.err('> '))) {
        if (line.trim() !== '') await ask(context, client, sessionId, line, { json: wantsJson(command) });
      }
    });
  examples(chat, ['troupe agent chat', 'troupe agent chat --notebook nb_01…']);

  const show = group
    .command('show')
    .description('show a conversation')
    .argument('<conversation>', 'id of the conversation')
    .action(async (sessionId: string, _, command) => {
      const session = await connect(command).agentSessions.get(sessionId);
      if (wantsJson(command)) printJson(terminal, session);
      else terminal.out(conversationText(session, terminal.color));
    });
  examples(show, ['troupe agent show conv_01…']);

  const list = group
    .command('list')
    .description('list the conversations that you may read')
    .action(async (_, command) => {
      printList(terminal, await collect(connect(command).agentSessions.each()), COLUMNS, wantsJson(command));
    });
  examples(list, ['troupe agent list']);

  const share = group
    .command('share')
    .description('share a conversation with a member, who can then read, prompt and close it')
    .argument('<conversation>', 'id of the conversation')
    .argument('<user>', 'id of the member')
    .option('--revoke', 'stop sharing it')
    .action(async (sessionId: string, userId: string, { revoke }: { revoke?: boolean }, command) => {
      const { agentSessions } = connect(command);
      if (revoke === true) await agentSessions.revoke(sessionId, userId);
      else await agentSessions.grant(sessionId, userId);
      const shared = revoke !== true;
      if (wantsJson(command)) return printJson(terminal, { sessionId, userId, shared });
      terminal.out(`${sessionId} is ${shared ? 'shared' : 'no longer shared'} with ${userId}.\n`);
    });
  examples(share, ['troupe agent share nb_01… ada', 'troupe agent share nb_01… ada --revoke']);

  const handOver = group
    .command('hand-over')
    .description(
      'make another member the owner of a conversation; for its present owner and owners of the workspace',
    )
    .argument('<conversation>', 'id of the conversation')
    .argument('<user>', 'id of the member')
    .action(async (sessionId: string, userId: string, _, command) => {
      const session = await connect(command).agentSessions.handOver(sessionId, userId);
      if (wantsJson(command)) return printJson(terminal, session);
      terminal.out(`${sessionId} belongs to ${session.ownerId}.\n`);
    });
  examples(handOver, ['troupe agent hand-over nb_01… ada']);

  const deleting = group
    .command('delete')
    .description('close conversations and delete them for ever, with their prompts')
    .argument('<conversation...>', 'ids of the conversations')
    .action(async (ids: readonly string[], _, command) => {
      const client = connect(command);
      for (const id of ids) {
        await client.agentSessions.delete(id);
        if (!wantsJson(command)) terminal.out(`${id} is deleted.\n`);
      }
      if (wantsJson(command)) {
        printJson(
          terminal,
          ids.map((id) => ({ id, deleted: true })),
        );
      }
    });
  examples(deleting, ['troupe agent delete conv_01…']);

  const close = group
    .command('close')
    .description('close a conversation; its history stays')
    .argument('<conversation>', 'id of the conversation')
    .action(async (sessionId: string, _, command) => {
      const session = await connect(command).agentSessions.close(sessionId);
      if (wantsJson(command)) printJson(terminal, session);
      else terminal.out(`${sessionId} is closed.\n`);
    });
  examples(close, ['troupe agent close conv_01…']);
};

async function openConversation(client: Client, options: NewOptions) {
  const { notebook, model, instructions, datasource } = options;
  const environmentId =
    options.environment ??
    (notebook === undefined
      ? (await client.executionEnvironments.create()).environmentId
      : (await client.notebookSessions.get(notebook)).environmentId);
  if (environmentId === null) throw new CommandFailure(`The notebook session ${notebook} is closed.`);
  const config = {
    ...(model === undefined ? {} : { model }),
    ...(instructions === undefined ? {} : { instructions }),
  };
  try {
    return await client.agentSessions.open({
      environmentId,
      config,
      ...(notebook === undefined ? {} : { notebookSessionId: notebook }),
      ...(datasource === undefined ? {} : { context: { datasourceSlugs: datasource } }),
    });
  } catch (error) {
    const isNew = options.environment === undefined && notebook === undefined;
    if (isNew) await client.executionEnvironments.close(environmentId);
    throw error;
  }
}

interface AskOptions {
  /** Whether every event is printed as a line of JSON, and the run as the last line. */
  readonly json: boolean;
  readonly timeoutS?: number | undefined;
}

/** Sends one prompt and shows its answer. */
async function ask(
  { terminal, input }: CliContext,
  client: Client,
  sessionId: string,
  text: string,
  { json, timeoutS }: AskOptions,
): Promise<ExitCode> {
  using interruption = new Interruption(input);
  const screen = new ConversationScreen(terminal);
  const server = new ServerReturn({ say: (line) => (json ? undefined : screen.note(line)) });
  const { leave: signal } = interruption;
  const idempotencyKey = newKey(); // if the server stops and its answer is lost, repeating the prompt must not make a second run
  const run = await followPrompt({
    client,
    sessionId,
    server,
    signal,
    submit: async () => {
      interruption.stop.throwIfAborted();
      const options = { timeoutS, signal, idempotencyKey };
      const sent = () => client.agentSessions.prompt(sessionId, text, options);
      const { runId } = await server.attempt(sent, signal);
      interruption.instead = () => {
        terminal.err('\ncancelling; press Ctrl-C again to leave at once\n');
        client.runs.cancel(runId, { signal }).catch(() => {}); // the run may have ended
      };
      if (interruption.stop.aborted) interruption.instead(); // Ctrl-C was pressed during the submission
      return runId;
    },
    take: (event) => (json ? printJsonLine(terminal, event) : screen.take(event)),
  });
  if (json) printJsonLine(terminal, { type: 'run', sessionId, runId: run.id, data: run });
  else screen.finish(run);
  return exitCodeOfRun(run);
}
