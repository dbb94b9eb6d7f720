import { Argument } from 'commander';
import type { Client } from '#src/client/client.ts';
import type { CommandGroup } from '../command-group.ts';

const PATIENCE_MS = 1500;
const LIMIT = 100;

type ListIds = (client: Client, signal: AbortSignal) => Promise<readonly string[]>;

const live =
  (kind: string): ListIds =>
  async (client, signal) => {
    const { items } = await client.actors({ signal });
    return items.filter((actor) => actor.kind === kind && actor.state !== 'closed').map(({ id }) => id);
  };

/** How the ids are found that an argument of this name can be. */
export const ID_KINDS: Readonly<Record<string, ListIds>> = {
  notebook: async (client, signal) =>
    (await client.notebooks.list({ limit: LIMIT, signal })).items.map(({ id }) => id),
  session: live('notebook-session'),
  environment: live('environment'),
  run: live('run'),
  conversation: async (client, signal) =>
    (await client.agentSessions.list({ limit: LIMIT, signal })).items.map(({ sessionId }) => sessionId),
};

/** Asked by the completion scripts while somebody types. */
export const COMPLETE_IDS = 'complete-ids';

export const completeIds: CommandGroup = (program, { terminal, connect }) => {
  program
    .command(COMPLETE_IDS, { hidden: true })
    .description('print ids that can follow, one on a line, for the completion of shells')
    .addArgument(new Argument('<kind>').choices(Object.keys(ID_KINDS)))
    .action(async (kind: string, _, command) => {
      const ids = await ID_KINDS[kind]?.(connect(command), AbortSignal.timeout(PATIENCE_MS));
      terminal.out((ids ?? []).map((id) => `${id}\n`).join(''));
    });
};
