import { Argument } from 'commander';
import type { CommandGroup } from '../command-group.ts';
import { bashScript, fishScript, zshScript } from '../completion/scripts.ts';
import { type CommandWords, completionWords } from '../completion/words.ts';
import { examples } from '../examples.ts';
import { describeOperations } from './api.ts';

const SHELLS: Readonly<Record<string, (words: readonly CommandWords[]) => string>> = {
  bash: bashScript,
  zsh: zshScript,
  fish: fishScript,
};

/** `troupe completion`: completion scripts for shells. */
export const completion: CommandGroup = (program, { terminal }) => {
  const command = program
    .command('completion')
    .summary('print a completion script')
    .description(
      'print a shell script that completes commands, options, files, and ids that the server knows',
    )
    .addArgument(new Argument('<shell>').choices(Object.keys(SHELLS)))
    .action(async (shell: string) => {
      await describeOperations(program);
      terminal.out(SHELLS[shell]?.(completionWords(program)) ?? '');
    });
  examples(command, [
    'source <(troupe completion bash)',
    'source <(troupe completion zsh)',
    'troupe completion fish > ~/.config/fish/completions/troupe.fish',
  ]);
};
