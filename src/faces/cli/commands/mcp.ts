import { setTimeout as pause } from 'node:timers/promises';
import { resolveAccess } from '../access.ts';
import type { CommandGroup } from '../command-group.ts';
import { examples } from '../examples.ts';
import { McpBridge } from '../mcp-bridge.ts';

/** How long to wait for answers after the end of the input. */
const GRACE_MS = 2_000;

/** `troupe mcp`: the server's tools for programs that start an MCP server as a process. */
export const mcp: CommandGroup = (program, { terminal, input, env, cwd }) => {
  const command = program
    .command('mcp')
    .description(
      'serve the Model Context Protocol on standard input and output, for programs that start their MCP servers. ' +
        'The command passes messages on to the server, which serves the same protocol by HTTP at /mcp.',
    )
    .action(async (_, self) => {
      const { workspace } = self.optsWithGlobals() as { readonly workspace?: string };
      const access = resolveAccess({ env, cwd, workspaceId: workspace });
      const bridge = new McpBridge(access, (line) => terminal.out(`${line}\n`));
      const open = new Set<Promise<void>>();
      for await (const line of input.lines(() => {})) {
        if (line.trim() === '') continue;
        const carried = bridge.carry(line).finally(() => open.delete(carried));
        open.add(carried);
      }
      // A program that has only closed its input still reads answers; a program that has exited does not.
      const answered = Promise.all(open);
      await Promise.race([answered, pause(GRACE_MS, undefined, { ref: false })]);
      bridge.end();
      await answered;
    });
  examples(command, ['troupe mcp', 'claude mcp add troupe -- troupe mcp']);
};
