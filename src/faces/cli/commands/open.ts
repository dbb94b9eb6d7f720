import { join } from 'node:path';
import type { Command } from 'commander';
import { ApiError } from '#src/contract/client/api-error.ts';
import type { Client } from '#src/contract/client/client.ts';
import { openNotebookPage } from '#src/contract/client/notebook-page.ts';
import { showInBrowser } from '../browser.ts';
import type { CommandGroup } from '../command-group.ts';
import { examples } from '../examples.ts';
import { CommandFailure } from '../exit-code.ts';
import { stateFolder } from '../run/file-links.ts';
import { notebookNamed } from '../run/named-objects.ts';
import { printJson } from '../terminal.ts';

interface OpenOptions {
  readonly app?: boolean;
  readonly print?: boolean;
}

/** `troupe open`: a notebook in the browser. */
export const open: CommandGroup = (program, context) => {
  const { terminal, env, connect, wantsJson } = context;
  const command = program
    .command('open')
    .description(
      'open a notebook in the browser, on its live session or a new one. The address works once, within a minute. The command prints ' +
        'the address when this machine has no display, and with --json.',
    )
    .argument('<notebook>', 'title or id of the notebook, or its file; a file without a notebook is imported')
    .option('--app', 'show outputs without code: the session has the mode run')
    .option('--print', 'print the address, without starting a browser')
    .action(async (name: string, { app, print }: OpenOptions, self: Command) => {
      const client = connect(self);
      const notebookId = await notebookNamed(client, name, context, self);
      if (app === true) await checkMode(client, notebookId);
      const mode = app === true ? 'run' : 'edit';
      const { url: path, access, expiresAt } = await openNotebookPage(client, notebookId, { mode });
      const url = context.baseUrl(self) + path;
      if (wantsJson(self)) return printJson(terminal, { notebookId, url, access, expiresAt });
      const failure =
        print === true ? '' : await showInBrowser(url, { env, folder: join(stateFolder(env), 'pages') });
      if (failure === undefined) return terminal.err(`${notebookId} is open in the browser.\n`);
      if (failure !== '') terminal.err(`No browser can be started here: ${failure}. Open this address:\n`);
      terminal.out(`${url}\n`);
    });
  examples(command, [
    'troupe open analysis.py',
    "troupe open 'Sales in March'",
    'troupe open nb_01… --app',
    'troupe open analysis.py --print',
  ]);
};

/** Throws `CommandFailure` when the notebook has an open session that shows its code. */
async function checkMode(client: Client, notebookId: string): Promise<void> {
  const session = await client.notebookSessions.get(notebookId).catch((error: unknown) => {
    if (error instanceof ApiError && error.status === 404) return undefined; // no session was ever opened
    throw error;
  });
  if (session === undefined || session.status === 'closed' || session.mode === 'run') return;
  throw new CommandFailure(
    `A session in the mode ${session.mode} is open on ${notebookId}, which shows the code: leave --app out, or close it first (troupe sessions close ${notebookId}).`,
  );
}
