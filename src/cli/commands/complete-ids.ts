import { Argument } from 'commander';
import type { Client } from '#src/client/client.ts';
import type { CommandGroup } from '../command-group.ts';

const TIMEOUT_MS = 1500;
const MAX_IDS = 100;

type ListIds = (client: Client, signal: AbortSignal) => Promise<readonly string[]>;

const live =
  (kind: string): ListIds =>
  async (client, signal) => {
    const { items } = await client.actors({ signal });
    return items.filter((actor) => actor.kind === kind && actor.state !== 'closed').map(({ id }) => id);
  };

/** By the name of an argument: lists the ids that it can be. */
export const ID_KINDS: Readonly<Record<string, ListIds>> = {
  notebook: async (client, signal) =>
    (await client.notebooks.list({ limit: MAX_IDS, signal })).items.map(({ id }) => id),
  session: live('notebook-session'),
  environment: live('environment'),
  run: live('run'),
  conversation: async (client, signal) =>
    (await client.agentSessions.list({ limit: MAX_IDS, signal })).items.map(({ sessionId }) => sessionId),
};

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
      terminal.out((ids ?? []).map((id) => `${id}\n`).join(''));
    });
};
