import { importSetUp } from '#src/base/install/set-up-module.ts';
import type { CommandGroup } from '../command-group.ts';
import { examples } from '../examples.ts';

/** The part of set-up that runs a kernel node. */
interface NodeProgram {
  join(given: {
    invitation?: string | undefined;
    secretFile?: string | undefined;
    name?: string | undefined;
    once?: boolean | undefined;
  }): Promise<never>;
}

interface Options {
  readonly name?: string;
  readonly secretFile?: string;
  readonly exitWhenLost?: boolean;
}

/** `troupe node join`: makes this machine a kernel node of a server. */
export const node: CommandGroup = (program) => {
  const group = program
    .command('node')
    .description('run kernels on this machine for a server on another one');
  const join = group
    .command('join')
    .summary('make this machine a kernel node, and run it in the foreground')
    .description(
      'make this machine a kernel node of the server that made the invitation, and run it in the foreground until SIGTERM or SIGINT. Without an invitation, run a node that has joined before.',
    )
    .argument(
      '[invitation]',
      'the invitation HOST:PORT#CODE that `troupe nodes invite` printed; with --secret-file the address HOST:PORT of the server',
    )
    .option(
      '--secret-file <file>',
      'file with the secret that admits machines without an invitation (TROUPE_NODES_SECRET_FILE of the server)',
    )
    .option('--name <name>', 'name of the node; default: the name of this machine')
    .option(
      '--exit-when-lost',
      'end when the connection to the server is lost; for service managers that start the command again',
    )
    .action(async (invitation: string | undefined, options: Options) => {
      const { join: run } = await importSetUp<NodeProgram>('join');
      const { name, secretFile, exitWhenLost } = options;
      await run({ invitation, secretFile, name, once: exitWhenLost });
    });
  examples(join, [
    "troupe node join '192.168.1.10:8790#…'",
    'troupe node join',
    'troupe node join 192.168.1.10:8790 --secret-file /run/secrets/troupe-nodes',
  ]);
};
