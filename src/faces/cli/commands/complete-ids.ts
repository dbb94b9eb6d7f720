import { Argument } from 'commander';
import type { Client } from '#src/contract/client/client.ts';
import type { CommandGroup } from '../command-group.ts';

const TIMEOUT_MS = 1500;
const NEWEST = { limit: 100, order: 'desc' } as const;

type ListIds = (client: Client, signal: AbortSignal) => Promise<readonly string[]>;

/** Lists the possible ids for an argument, by the argument's name, the newest first. */
export const ID_KINDS: Readonly<Record<string, ListIds>> = {
  notebook: async (client, signal) =>
    (await client.notebooks.list({ ...NEWEST, signal })).items.map(({ id }) => id),
  session: async (client, signal) =>
    (await client.notebookSessions.list({ ...NEWEST, status: 'open', signal })).items.map(
      ({ sessionId }) => sessionId,
    ),
  environment: async (client, signal) =>
    (await client.executionEnvironments.list({ ...NEWEST, status: 'open', signal })).items.map(
      ({ environmentId }) => environmentId,
    ),
  package: async (client, signal) => (await client.packages.list({ signal })).items.map(({ name }) => name),
  run: async (client, signal) => (await client.runs.list({ ...NEWEST, signal })).items.map(({ id }) => id),
  job: async (client, signal) => (await client.jobs.list({ ...NEWEST, signal })).items.map(({ id }) => id),
  hook: async (client, signal) => (await client.hooks.list({ ...NEWEST, signal })).items.map(({ id }) => id),
  conversation: async (client, signal) =>
    (await client.agentSessions.list({ ...NEWEST, signal })).items.map(({ sessionId }) => sessionId),
};

/** Shells expand completions, including commands in them, so only harmless ids are printed. */
const PLAIN_ID = /^\w[\w.-]*$/;

/** The command that the completion scripts call. */
export const COMPLETE_IDS = 'complete-ids';

/** `troupe complete-ids`: prints ids for shell completion. */
export const completeIds: CommandGroup = (program, { terminal, connect }) => {
  program
    .command(COMPLETE_IDS, { hidden: true })
    .description('print ids for shell completion, one per line')
    .addArgument(new Argument('<kind>').choices(Object.keys(ID_KINDS)))
    .action(async (kind: string, _, command) => {
      const ids = await ID_KINDS[kind]?.(connect(command), AbortSignal.timeout(TIMEOUT_MS));
      const plain = (ids ?? []).filter((id) => PLAIN_ID.test(id));
      terminal.out(plain.map((id) => `${id}\n`).join(''));
    });
};
