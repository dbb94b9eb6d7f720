import type { Command } from 'commander';
import type { NotebookVersion } from '#src/contract/wire/notebook.ts';
import type { CliContext } from '../command-group.ts';
import { examples } from '../examples.ts';
import { idOfNotebook, syncContextOf } from '../run/notebook-sync.ts';
import { notebookText } from '../show/notebook.ts';
import { styleOf } from '../style.ts';
import { type ListColumn, printJson, printList } from '../terminal.ts';
import { NOTEBOOK_ARGUMENT } from './notebook-settings.ts';

const COLUMNS: readonly ListColumn<NotebookVersion>[] = [
  { title: 'version', of: ({ updatedAt }) => updatedAt },
  { title: 'changed by', of: ({ updatedBy }) => updatedBy ?? '' },
  { title: 'title', of: ({ title }) => title },
  { title: 'cells', of: ({ cellCount }) => String(cellCount) },
  { title: '', of: ({ isCurrent }) => (isCurrent ? 'current' : '') },
];

const VERSION = 'the time that names the version, as the list shows it';

/** `troupe notebooks versions`: earlier versions of a notebook. */
export function versions(parent: Command, context: CliContext): void {
  const { terminal, connect, wantsJson } = context;
  const idOf = (name: string, command: Command) => idOfNotebook(syncContextOf(context, command), name);
  const group = parent
    .command('versions')
    .description('earlier versions of a notebook, which can be restored');
  const list = group
    .command('list')
    .description('list the versions, newest first, with who made the last change of each')
    .argument('<notebook>', NOTEBOOK_ARGUMENT)
    .action(async (name: string, _, command) => {
      const client = connect(command);
      const found = await client.notebooks.versions(await idOf(name, command));
      printList(terminal, found, COLUMNS, wantsJson(command));
    });
  examples(list, ['troupe notebooks versions list report.py']);

  const show = group
    .command('show')
    .description('show the notebook as it was in a version')
    .argument('<notebook>', NOTEBOOK_ARGUMENT)
    .argument('<version>', VERSION)
    .action(async (name: string, version: string, _, command) => {
      const client = connect(command);
      const notebook = await client.notebooks.version(await idOf(name, command), version);
      if (wantsJson(command)) printJson(terminal, notebook);
      else terminal.out(notebookText(notebook, styleOf(terminal.color)));
    });
  examples(show, ['troupe notebooks versions show report.py 2026-11-26T09:30:00.000Z']);

  const restore = group
    .command('restore')
    .description('give the notebook the content of a version; its present state becomes a version')
    .argument('<notebook>', NOTEBOOK_ARGUMENT)
    .argument('<version>', VERSION)
    .action(async (name: string, version: string, _, command) => {
      const client = connect(command);
      const { id, updatedAt: expectedUpdatedAt } = await client.notebooks.get(await idOf(name, command));
      const notebook = await client.notebooks.restore(id, version, { expectedUpdatedAt });
      if (wantsJson(command)) printJson(terminal, notebook);
      else terminal.err(`${id} is as it was at ${version}.\n`);
    });
  examples(restore, ['troupe notebooks versions restore report.py 2026-11-26T09:30:00.000Z']);
}
