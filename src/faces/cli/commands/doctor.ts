import { commandConfig, resolveAccess } from '../access.ts';
import type { CliContext, CommandGroup } from '../command-group.ts';
import { examples } from '../examples.ts';
import { CommandEnd, CommandFailure, EXIT } from '../exit-code.ts';
import { LiveLine } from '../run/live-line.ts';
import { checkServer, type ServerFinding } from '../server-check.ts';
import { type Style, styleOf } from '../style.ts';
import { printJson } from '../terminal.ts';

/** `troupe doctor`: checks the machine and the server. */
export const doctor: CommandGroup = (program, context) => {
  const command = program
    .command('doctor')
    .summary('check this machine and its server, and say what to do')
    .description(
      'check this machine and its server, and say what to do; the exit code is 1 if there is a problem',
    )
    .option('--model', 'also ask the default model for one word')
    .action(async (options: { model?: true }, cmd) => {
      const { workspace } = cmd.optsWithGlobals();
      const askModel = options.model === true;
      const json = context.wantsJson(cmd);
      const style = styleOf(context.terminal.color);
      const line = new LiveLine(context.terminal, () => 'checking');
      const findings: ServerFinding[] = [];
      try {
        for await (const finding of findingsOf(
          context,
          typeof workspace === 'string' ? workspace : undefined,
          askModel,
        )) {
          findings.push(finding);
          if (!json) line.terminal.out(findingText(finding, style));
        }
      } finally {
        line[Symbol.dispose]();
      }
      const ok = findings.every(({ status }) => status !== 'problem');
      if (json) printJson(context.terminal, { ok, findings });
      if (!ok) throw new CommandEnd(EXIT.failed);
    });
  examples(command, [
    'troupe doctor',
    'troupe doctor --model',
    'troupe doctor --json | jq \'.findings[] | select(.status != "ok")\'',
  ]);
};

/** Yields the findings of `troupe doctor`. */
export async function* findingsOf(
  { env, cwd }: CliContext,
  workspaceId: string | undefined,
  askModel: boolean,
): AsyncGenerator<ServerFinding, void, undefined> {
  const { config } = commandConfig({ env, cwd });
  // The module is imported here, because it loads the kernel host and the store, which no other command needs.
  const { examine } = await import('#src/operate/doctor/examine.ts');
  yield* examine(config);
  try {
    yield* checkServer(resolveAccess({ env, cwd, workspaceId }), { askModel });
  } catch (error) {
    if (!(error instanceof CommandFailure)) throw error;
    const advice =
      'Start a server here once, which stores credentials for this command, or set SERVICE_ACCESS_TOKEN and SERVICE_WORKSPACE_ID.';
    yield { check: 'server', status: 'warning', detail: error.message, advice };
  }
}

const WIDTH = 20;

function findingText({ check, status, detail, advice }: ServerFinding, style: Style): string {
  const marks = { ok: style.green('✓'), warning: style.yellow('!'), problem: style.red('✗') };
  const indent = ' '.repeat(WIDTH + 3);
  const todo = advice === null ? '' : `${indent}${style.dim('→')} ${advice}\n`;
  return `${marks[status]} ${style.bold(check.padEnd(WIDTH))} ${detail}\n${todo}`;
}
