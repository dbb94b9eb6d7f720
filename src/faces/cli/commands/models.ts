import { importSetUp } from '#src/base/install/set-up-module.ts';
import type { ModelProvider } from '#src/contract/wire/models.ts';
import type { CommandGroup } from '../command-group.ts';
import { examples } from '../examples.ts';
import { CommandEnd, CommandFailure, EXIT } from '../exit-code.ts';
import { type ListColumn, printJson, printList } from '../terminal.ts';

const COLUMNS: readonly ListColumn<ModelProvider>[] = [
  { title: 'provider', of: ({ provider }) => provider },
  { title: 'usable', of: ({ usable }) => (usable ? 'yes' : 'no') },
  { title: 'through', of: ({ source }) => source },
  { title: 'models', of: ({ provider, models }) => models.join(', ') || `${provider}/…` },
];

/** `troupe models`: the models that agents use, and the workspace's keys for them. */
export const models: CommandGroup = (program, { terminal, connect, wantsJson, input }) => {
  const group = program.command('models').description('models that answer the prompts of agents');

  const list = group
    .command('list')
    .description('list the providers, and which of them this workspace can use')
    .action(async (_, command) => {
      const found = await connect(command).models.list();
      if (wantsJson(command)) return printJson(terminal, found);
      printList(terminal, [...found.items], COLUMNS, false);
      terminal.err(`default: ${found.defaultModel ?? 'none; set TROUPE_DEFAULT_MODEL'}\n`);
    });
  examples(list, ['troupe models list']);

  const setKey = group
    .command('set-key')
    .description(
      "set the workspace's own key for a provider, read from standard input; only owners may do this",
    )
    .argument('<provider>', 'anthropic, openai or openai-compatible')
    .action(async (provider: string, _, command) => {
      // The key is not an argument, because other users can read the arguments of a process.
      const key = (await input.read()).trim();
      if (key === '') throw new CommandFailure('Provide the key on standard input.', EXIT.usage);
      const kept = await connect(command).models.setKey(provider, key);
      if (wantsJson(command)) printJson(terminal, kept);
      else terminal.out(`The key for ${provider} is stored.\n`);
    });
  examples(setKey, ['pass show anthropic | troupe models set-key anthropic']);

  const deleteKey = group
    .command('delete-key')
    .description("delete the workspace's key for a provider")
    .argument('<provider>')
    .action(async (provider: string, _, command) => {
      await connect(command).models.deleteKey(provider);
      if (wantsJson(command)) printJson(terminal, { provider, deleted: true });
      else terminal.out(`The key for ${provider} is deleted.\n`);
    });
  examples(deleteKey, ['troupe models delete-key anthropic']);

  const addLocal = group
    .command('add-local')
    .description(
      'install llama.cpp (some 100 MB), which serves a GGUF file on this machine (see TROUPE_LOCAL_MODEL)',
    )
    .action(async (_, command) => {
      const { addLocalModel } = await importSetUp<{ addLocalModel: () => Promise<string> }>('local-model');
      const message = await addLocalModel();
      if (wantsJson(command)) printJson(terminal, { message });
      else terminal.out(`${message}\n`);
    });
  examples(addLocal, ['troupe models add-local']);

  const test = group
    .command('test')
    .description('ask a model for one word')
    .argument('[model]', 'model as provider/model (default: the default model)')
    .action(async (model: string | undefined, _, command) => {
      const result = await connect(command).models.test(model);
      if (wantsJson(command)) printJson(terminal, result);
      else terminal.out(`${result.model}: ${result.message} (${result.elapsedMs} ms)\n`);
      if (!result.ok) throw new CommandEnd(EXIT.failed);
    });
  examples(test, ['troupe models test', 'troupe models test openai-compatible/qwen3']);
};
