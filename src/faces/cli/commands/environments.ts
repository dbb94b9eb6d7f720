import type { Environment } from '#src/contract/wire/session.ts';
import { collect } from '../collect.ts';
import type { CommandGroup } from '../command-group.ts';
import { examples } from '../examples.ts';
import { factLines } from '../show/notebook.ts';
import { type Style, styleOf } from '../style.ts';
import { type ListColumn, printJson, printList } from '../terminal.ts';

const COLUMNS: readonly ListColumn<Environment>[] = [
  { title: 'environment', of: ({ environmentId }) => environmentId },
  { title: 'status', of: ({ status }) => status },
  { title: 'notebook session', of: ({ notebookSessionId }) => notebookSessionId },
  { title: 'agent sessions', of: ({ agentSessionIds }) => String(agentSessionIds.length) },
  { title: 'created', of: ({ createdAt }) => createdAt },
];

/** `troupe environments`: execution environments. */
export const environments: CommandGroup = (program, { terminal, connect, wantsJson }) => {
  const group = program
    .command('environments')
    .description('execution environments, each for one notebook session');
  const create = group
    .command('create')
    .description('create an environment and print its id')
    .action(async (_, command) => {
      const environment = await connect(command).executionEnvironments.create();
      if (wantsJson(command)) printJson(terminal, environment);
      else terminal.out(`${environment.environmentId}\n`);
    });
  examples(create, ['env=$(troupe environments create)']);
  const list = group
    .command('list')
    .description('list the open environments, oldest first')
    .option('--all', 'also closed environments')
    .action(async ({ all }: { all?: boolean }, command) => {
      const status = all === true ? undefined : 'open';
      const found = connect(command).executionEnvironments.each({ status });
      printList(terminal, await collect(found), COLUMNS, wantsJson(command));
    });
  examples(list, ['troupe environments list', 'troupe environments list --all']);
  const show = group
    .command('show')
    .description('show an environment')
    .argument('<environment>', 'id of the environment')
    .action(async (id: string, _, command) => {
      const environment = await connect(command).executionEnvironments.get(id);
      if (wantsJson(command)) printJson(terminal, environment);
      else terminal.out(environmentText(environment, styleOf(terminal.color)));
    });
  examples(show, ['troupe environments show env_01…']);
  const close = group
    .command('close')
    .description('close an environment; refused while sessions are attached to it')
    .argument('<environment>', 'id of the environment')
    .action(async (id: string, _, command) => {
      const environment = await connect(command).executionEnvironments.close(id);
      if (wantsJson(command)) printJson(terminal, environment);
      else terminal.out(`${id} is closed.\n`);
    });
  examples(close, ['troupe environments close env_01…']);
};

function environmentText(environment: Environment, style: Style): string {
  const { environmentId, status, notebookSessionId, agentSessionIds, createdAt, updatedAt } = environment;
  return factLines(
    [
      ['environment', environmentId],
      ['status', status],
      ['notebook session', notebookSessionId ?? '-'],
      ['agent sessions', agentSessionIds.join(', ') || '-'],
      ['created', createdAt],
      ['updated', updatedAt],
    ],
    style,
  );
}
