/** The `troupe` program: its global options, its command groups, and how a failure becomes a message and an exit code. */
import { Command, CommanderError } from 'commander';
import { ApiError, ConnectionError } from '#src/client/api-error.ts';
import { createClient } from '#src/client/client.ts';
import { ConfigError } from '#src/config.ts';
import { resolveAccess } from './access.ts';
import type { CliContext, CommandGroup } from './command-group.ts';
import { completion } from './commands/completion.ts';
import { config } from './commands/config.ts';
import { members } from './commands/members.ts';
import { serve } from './commands/serve.ts';
import { tokens } from './commands/tokens.ts';
import { workspaces } from './commands/workspaces.ts';
import { CommandFailure, EXIT, EXIT_CODES_TEXT, type ExitCode } from './exit-code.ts';
import { printJson, type Terminal } from './terminal.ts';

/** Every group, in the order of the help. */
const GROUPS: readonly CommandGroup[] = [serve, config, workspaces, members, tokens, completion];

export interface Surroundings {
  readonly terminal: Terminal;
  readonly env: Readonly<Record<string, string | undefined>>;
  readonly cwd: string;
}

/** Runs one command line, without the names of node and of the program. Never rejects: failures are shown and counted. */
export async function runProgram(args: readonly string[], surroundings: Surroundings): Promise<ExitCode> {
  try {
    await createProgram(surroundings).parseAsync(args, { from: 'user' });
    return EXIT.ok;
  } catch (error) {
    return report(error, surroundings.terminal, args.includes('--json'));
  }
}

export function createProgram({ terminal, env, cwd }: Surroundings): Command {
  const program = new Command('troupe')
    .description('Notebooks, agents and data on a server of your own.')
    .option('--json', 'print JSON instead of text')
    .option('--workspace <id>', 'the workspace to work in (else SERVICE_WORKSPACE_ID)')
    .addHelpText('after', EXIT_CODES_TEXT)
    .exitOverride()
    .showSuggestionAfterError()
    .configureOutput({ writeOut: terminal.out, writeErr: terminal.err });
  const context: CliContext = {
    terminal,
    env,
    cwd,
    connect(command) {
      const { workspace } = command.optsWithGlobals<{ workspace?: string }>();
      return createClient(resolveAccess({ env, cwd, workspaceId: workspace }));
    },
    wantsJson: (command) => command.optsWithGlobals<{ json?: boolean }>().json === true,
  };
  for (const group of GROUPS) group(program, context);
  return program;
}

function report(error: unknown, terminal: Terminal, json: boolean): ExitCode {
  if (error instanceof CommanderError) return error.exitCode === 0 ? EXIT.ok : EXIT.usage; // it has been shown
  const exitCode = exitCodeOf(error);
  const message = error instanceof Error ? error.message : String(error);
  const details =
    error instanceof ApiError ? { code: error.code, status: error.status, requestId: error.requestId } : {};
  if (json) {
    printJson({ ...terminal, out: terminal.err }, { error: { message, ...details } });
  } else {
    terminal.err(`troupe: ${message}\n`);
    if (error instanceof ApiError) {
      for (const violation of error.errors)
        terminal.err(`  ${violation.path || 'the body'} ${violation.message}\n`);
      terminal.err(
        `  (${error.code}${error.requestId === undefined ? '' : `, request ${error.requestId}`})\n`,
      );
    }
  }
  return exitCode;
}

function exitCodeOf(error: unknown): ExitCode {
  if (error instanceof CommandFailure) return error.exitCode;
  if (error instanceof ConfigError) return EXIT.settings;
  if (error instanceof ConnectionError) return EXIT.unreachable;
  return EXIT.failed;
}
