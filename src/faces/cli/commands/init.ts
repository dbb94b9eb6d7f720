import { Argument } from 'commander';
import { resolveAccess } from '../access.ts';
import type { CommandGroup } from '../command-group.ts';
import { examples } from '../examples.ts';
import { SNIPPETS } from '../snippets.ts';
import { styleOf } from '../style.ts';

/** `troupe init`: prints a first program for this server, to be redirected into a file. */
export const init: CommandGroup = (program, { terminal, env, cwd }) => {
  const command = program
    .command('init')
    .description(
      'print a first program with the address and the workspace of this server, but without a token',
    )
    .addArgument(
      new Argument('<kind>', 'the language, or mcp for agents and editors').choices(Object.keys(SNIPPETS)),
    )
    .action((kind: keyof typeof SNIPPETS, _, self) => {
      const { workspace } = self.optsWithGlobals() as { readonly workspace?: string };
      const { baseUrl, workspaceId = '' } = resolveAccess({ env, cwd, workspaceId: workspace });
      const { text, next } = SNIPPETS[kind]({ baseUrl, workspaceId });
      terminal.out(text);
      terminal.err(styleOf(terminal.color).dim(`${next}\n`));
    });
  examples(command, ['troupe init python > first.py', 'troupe init mcp', 'bash <(troupe init curl)']);
};
