import type { Node } from '#src/contract/wire/nodes.ts';
import type { CommandGroup } from '../command-group.ts';
import { examples } from '../examples.ts';
import { sizeText } from '../show/size-text.ts';
import { type ListColumn, printJson, printList } from '../terminal.ts';

const COLUMNS: readonly ListColumn<Node>[] = [
  { title: 'node', of: ({ name }) => name },
  { title: 'state', of: ({ state }) => state },
  {
    title: 'kernels',
    of: ({ kernels, capacity }) => (capacity === null ? '–' : `${kernels} of ${capacity}`),
  },
  {
    title: 'memory free',
    of: ({ freeMemoryBytes }) => (freeMemoryBytes === null ? '–' : sizeText(freeMemoryBytes)),
  },
  { title: 'load', of: ({ load, cores }) => (load === null ? '–' : `${load.toFixed(1)} of ${cores}`) },
  { title: 'problem', of: ({ problem }) => problem ?? '' },
];

/** `troupe nodes`: the machines that run kernels for the server. */
export const nodes: CommandGroup = (program, context) => {
  const { terminal, connect, baseUrl, wantsJson } = context;
  const group = program
    .command('nodes')
    .description('kernel nodes: the machines that run kernels for the server (docs/nodes.md)');
  const list = group
    .command('list')
    .description('list the nodes with their kernels, free memory and load')
    .action(async (_, command) => {
      const found = await connect(command, { needsWorkspace: false }).nodes.list();
      printList(terminal, [...found.items], COLUMNS, wantsJson(command));
      if (wantsJson(command)) return;
      if (!found.enabled)
        terminal.err('This server runs kernels on its own machine (TROUPE_KERNEL_NODES=none).\n');
      else if (found.waiting > 0) terminal.err(`${found.waiting} kernels wait for a node with room.\n`);
      if (found.engine !== null && found.engine.problem !== null) terminal.err(`${found.engine.problem}\n`);
    });
  examples(list, ['troupe nodes list']);
  const invite = group
    .command('invite')
    .description(
      'print the command that makes another machine a kernel node; the invitation works once, for 15 minutes',
    )
    .option(
      '--host <host>',
      'address at which the other machine reaches this server; default: the host of the base URL',
    )
    .action(async ({ host }: { host?: string }, command) => {
      const invitation = await connect(command, { needsWorkspace: false }).nodes.invite();
      const address = host ?? new URL(baseUrl(command)).hostname;
      const target = `${address.includes(':') && !address.startsWith('[') ? `[${address}]` : address}:${invitation.port}`;
      if (wantsJson(command))
        printJson(terminal, { ...invitation, invitation: `${target}#${invitation.code}` });
      else terminal.out(`troupe node join '${target}#${invitation.code}'\n`);
      if (/^(localhost|127\.|\[?::1)/.test(address))
        terminal.err('Other machines cannot reach this address: name another one with --host.\n');
    });
  examples(invite, ['troupe nodes invite --host 192.168.1.10']);
  const drain = group
    .command('drain')
    .description('start no new kernels on a node; its present kernels stay')
    .argument('<node>', 'name of the node')
    .option('--off', 'let the node take kernels again')
    .action(async (name: string, { off }: { off?: boolean }, command) => {
      const changed = await connect(command, { needsWorkspace: false }).nodes.drain(name, off !== true);
      if (wantsJson(command)) printJson(terminal, changed);
      else if (changed.draining)
        terminal.out(`${name} takes no new kernels. It has ${changed.kernels} now.\n`);
      else terminal.out(`${name} takes kernels again.\n`);
    });
  examples(drain, ['troupe nodes drain laptop-b', 'troupe nodes drain laptop-b --off']);
  const remove = group
    .command('remove')
    .description('remove a node: its kernels end at once, and it needs a new invitation to join again')
    .argument('<node>', 'name of the node')
    .requiredOption('--yes', 'confirm that its kernels end')
    .action(async (name: string, _, command) => {
      await connect(command, { needsWorkspace: false }).nodes.remove(name);
      if (wantsJson(command)) printJson(terminal, { name, removed: true });
      else terminal.out(`${name} is removed.\n`);
    });
  examples(remove, ['troupe nodes remove laptop-b --yes']);
};
