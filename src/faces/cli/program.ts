/** The `troupe` program: its global options, its command groups, and how failures become messages and exit codes. */
import { execFileSync } from 'node:child_process';
import { existsSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { Command, CommanderError } from 'commander';
import { ignoredFile } from '#src/base/config/allowed-files.ts';
import { ConfigError } from '#src/base/config/config.ts';
import { PACKAGE_ROOT } from '#src/base/install/package-root.ts';
import { VERSION } from '#src/base/install/version.ts';
import { ApiError, ConnectionError } from '#src/contract/client/api-error.ts';
import { createClient } from '#src/contract/client/client.ts';
import { resolveAccess } from './access.ts';
import type { CliContext, CommandGroup } from './command-group.ts';
import { actors } from './commands/actors.ts';
import { agent } from './commands/agent.ts';
import { api } from './commands/api.ts';
import { audit } from './commands/audit.ts';
import { backup } from './commands/backup.ts';
import { codeCommands } from './commands/code.ts';
import { COMPLETE_IDS, completeIds } from './commands/complete-ids.ts';
import { completion } from './commands/completion.ts';
import { config } from './commands/config.ts';
import { datasourceCommands } from './commands/datasources.ts';
import { debug } from './commands/debug.ts';
import { doctor } from './commands/doctor.ts';
import { environments } from './commands/environments.ts';
import { fileCommands } from './commands/files.ts';
import { exitCodes, help } from './commands/help.ts';
import { hookCommands } from './commands/hooks.ts';
import { init } from './commands/init.ts';
import { jobs } from './commands/jobs.ts';
import { keys } from './commands/keys.ts';
import { login } from './commands/login.ts';
import { mcp } from './commands/mcp.ts';
import { members } from './commands/members.ts';
import { models } from './commands/models.ts';
import { node } from './commands/node.ts';
import { nodes } from './commands/nodes.ts';
import { notebookCommands } from './commands/notebooks.ts';
import { open } from './commands/open.ts';
import { packages } from './commands/packages.ts';
import { retention } from './commands/retention.ts';
import { run } from './commands/run.ts';
import { runCommands } from './commands/runs.ts';
import { serve } from './commands/serve.ts';
import { sessions } from './commands/sessions.ts';
import { tokens } from './commands/tokens.ts';
import { top } from './commands/top.ts';
import { whoami } from './commands/whoami.ts';
import { workspaces } from './commands/workspaces.ts';
import { CommandEnd, CommandFailure, EXIT, EXIT_CODES_TEXT, type ExitCode } from './exit-code.ts';
import type { ScreenDevice } from './full-screen.ts';
import type { Input } from './input.ts';
import { FileLinks } from './run/file-links.ts';
import { printJson, type Terminal, type TerminalDevice, terminalOn } from './terminal.ts';

/** Every command group, in the order of the help. */
const GROUPS: readonly CommandGroup[] = [
  serve,
  run,
  notebookCommands,
  open,
  fileCommands,
  packages,
  environments,
  sessions,
  runCommands,
  jobs,
  hookCommands,
  codeCommands,
  init,
  mcp,
  agent,
  models,
  datasourceCommands,
  keys,
  node,
  nodes,
  retention,
  workspaces,
  members,
  tokens,
  login,
  whoami,
  config,
  doctor,
  backup,
  actors,
  top,
  debug,
  audit,
  api,
  completion,
  completeIds,
  exitCodes,
  help,
];

const ENVIRONMENT_TEXT = `
Environment:
  SERVICE_BASE_URL      URL of the server, such as http://127.0.0.1:8787
  SERVICE_ACCESS_TOKEN  access token; not an option, because other users can read the options of a process
  SERVICE_WORKSPACE_ID  id of the workspace
  SERVICE_SESSION_ID    notebook session for sessions, runs list and code exec
  NO_COLOR              switches colours off
  Nothing needs to be set on a machine where the server was started from this directory.`;

const COMMIT_CHARS = 12;

/**
 * Commands that do not report an ignored settings file. Servers obey the file, `config allow` and `config deny` are about the
 * file, and a shell would show the report among its completions.
 */
const UNREPORTED: ReadonlySet<string> = new Set([
  'serve',
  'setup',
  'node join',
  'config allow',
  'config deny',
  'completion',
  COMPLETE_IDS,
]);

/** The parts of its process that the program uses. Tests pass stand-ins. */
export interface Surroundings {
  readonly terminal: TerminalDevice;
  readonly input: Input;
  /** Absent: standard output is not a terminal that can be drawn on. */
  readonly screen?: ScreenDevice | undefined;
  readonly env: Readonly<Record<string, string | undefined>>;
  readonly cwd: string;
}

/** Runs one command line, without the names of node and of the program. Returns the exit code; never rejects. */
export async function runProgram(args: readonly string[], surroundings: Surroundings): Promise<ExitCode> {
  const passedOn = passedOnOf(args);
  const json = args.slice(0, args.length - passedOn.length).includes('--json');
  try {
    await createProgram(surroundings, passedOn, json).parseAsync(args, { from: 'user' });
    return EXIT.ok;
  } catch (error) {
    return report(error, terminalOn(surroundings.terminal), json);
  }
}

function createProgram(
  { terminal: device, input, screen, env, cwd }: Surroundings,
  passedOn: readonly string[],
  json: boolean,
): Command {
  const terminal = terminalOn(device);
  const program = new Command('troupe')
    .description('Notebooks, agents and data on a server of your own.')
    .option('-V, --version', 'print the version and the commit')
    .on('option:version', () => {
      terminal.out(`${versionText()}\n`);
      throw new CommanderError(0, 'commander.version', '');
    })
    .option('--json', 'print JSON instead of text')
    .option('--workspace <id>', 'workspace to work in (default: SERVICE_WORKSPACE_ID)')
    .configureHelp({ showGlobalOptions: true })
    .addHelpText('after', `${ENVIRONMENT_TEXT}\n${EXIT_CODES_TEXT}`)
    .exitOverride()
    .showSuggestionAfterError()
    .showHelpAfterError('  Add --help to see commands and options.')
    .configureOutput({ writeOut: terminal.out, writeErr: json ? () => {} : terminal.err });
  const context: CliContext = {
    terminal,
    input,
    screen,
    env,
    cwd,
    passedOn,
    connect(command, options) {
      const { workspace } = command.optsWithGlobals<{ workspace?: string }>();
      return createClient(resolveAccess({ env, cwd, workspaceId: workspace, ...options }));
    },
    baseUrl(command) {
      const { workspace } = command.optsWithGlobals<{ workspace?: string }>();
      return resolveAccess({ env, cwd, workspaceId: workspace }).baseUrl.replace(/(?<!\/)\/+$/, '');
    },
    links(command) {
      const { workspace } = command.optsWithGlobals<{ workspace?: string }>();
      const { baseUrl, workspaceId = '' } = resolveAccess({ env, cwd, workspaceId: workspace });
      return new FileLinks({ env, cwd, baseUrl, workspaceId });
    },
    wantsJson: (command) => command.optsWithGlobals<{ json?: boolean }>().json === true,
  };
  program.hook('preAction', (_, command) => {
    if (json || UNREPORTED.has(nameOf(command))) return;
    const ignored = ignoredFile(env, cwd);
    if (ignored !== undefined)
      terminal.err(`troupe: ${ignored} is ignored. Read it, and if you trust it: troupe config allow\n`);
  });
  for (const group of GROUPS) group(program, context);
  for (const command of program.commands) command.helpCommand(false);
  return program;
}

/** Returns the name of a command below the program, such as `config allow`. */
function nameOf(command: Command): string {
  const above = command.parent;
  return above?.parent ? `${nameOf(above)} ${command.name()}` : command.name();
}

/** Returns the version and the commit of this installation, such as `1.0.0 (0123456789ab)`. */
function versionText(): string {
  const commit = commitOf(PACKAGE_ROOT)?.slice(0, COMMIT_CHARS); // cuts no character: it is hexadecimal
  return commit === undefined ? VERSION : `${VERSION} (${commit})`;
}

/**
 * Returns the commit that `npm pack` has noted in the package, or the commit that is checked out; undefined when neither is
 * known.
 */
function commitOf(root: string): string | undefined {
  const noted = join(root, 'dist/commit.txt');
  if (existsSync(noted)) return readFileSync(noted, 'utf8').trim();
  if (!existsSync(join(root, '.git'))) return undefined;
  try {
    return execFileSync('git', ['-C', root, 'rev-parse', 'HEAD'], {
      encoding: 'utf8',
      stdio: ['ignore', 'pipe', 'ignore'],
    }).trim();
  } catch {
    return undefined; // git is missing, or does not trust the owner of the checkout
  }
}

/** Returns the arguments after `--`. */
function passedOnOf(args: readonly string[]): readonly string[] {
  return args.includes('--') ? args.slice(args.indexOf('--') + 1) : [];
}

function report(error: unknown, terminal: Terminal, json: boolean): ExitCode {
  if (error instanceof CommandEnd) return error.exitCode; // the command has shown its outcome
  const exitCode = exitCodeOf(error);
  if (exitCode === EXIT.ok) return exitCode;
  const message = messageOf(error);
  if (json) {
    printJson({ ...terminal, out: terminal.err }, { error: { message, ...detailsOf(error) } });
  } else if (!(error instanceof CommanderError)) {
    // commander has already shown mistakes in the command line.
    const isSignedOut = error instanceof ApiError && error.code === 'unauthenticated';
    // The server's sentence is about a header, which says nothing to people who type commands.
    const shown = isSignedOut
      ? 'The server does not accept your token. Sign in again: troupe login. In scripts, set SERVICE_ACCESS_TOKEN.'
      : message;
    terminal.err(`troupe: ${shown}\n`);
    if (error instanceof ConnectionError)
      terminal.err('  Is `troupe serve` running there? `troupe doctor` can tell more.\n');
    if (error instanceof ApiError) {
      for (const violation of error.errors)
        terminal.err(`  ${violation.path || 'the body'} ${violation.message}\n`);
      terminal.err(`  (${placeOf(error)})\n`);
    }
  }
  return exitCode;
}

function messageOf(error: unknown): string {
  if (!(error instanceof Error)) return String(error);
  if (!(error instanceof CommanderError)) return error.message;
  if (error.code === 'commander.help') return 'Name a command: troupe help lists them.';
  return error.message.replace(/^error: /, '');
}

/** Returns the known details of an error in addition to its message. */
function detailsOf(error: unknown): object {
  if (!(error instanceof ApiError)) return {};
  const { code, status, requestId, errors } = error;
  return { code, status, requestId, ...(errors.length === 0 ? {} : { errors }) };
}

/** Returns the code, the location and the request id of an error, to look it up in the documentation and the log. */
function placeOf({ code, requestId, body }: ApiError): string {
  const { instance } = { instance: undefined, ...Object(body) };
  const at = typeof instance === 'string' ? ` at ${instance}` : '';
  return `${code}${at}${requestId === undefined ? '' : `, request ${requestId}`}`;
}

function exitCodeOf(error: unknown): ExitCode {
  // commander reports help and version as errors, too.
  if (error instanceof CommanderError) return error.exitCode === 0 ? EXIT.ok : EXIT.usage;
  if (error instanceof CommandFailure) return error.exitCode;
  if (error instanceof ConfigError) return EXIT.settings;
  if (error instanceof ConnectionError) return EXIT.unreachable;
  return EXIT.failed;
}
