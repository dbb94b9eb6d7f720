import type { Client } from '#src/contract/client/client.ts';
import type { CliContext, CommandGroup } from '../command-group.ts';
import { examples } from '../examples.ts';
import { CommandEnd, CommandFailure, EXIT } from '../exit-code.ts';
import { Interruption } from '../run/interruption.ts';
import { readTextFile } from '../run/notebook-file.ts';
import { describe, showOptions } from '../run/run-show.ts';
import { timeoutOption } from '../run/timeout-option.ts';
import { outputText } from '../show/output.ts';
import { OutputFiles } from '../show/output-files.ts';
import { styleOf } from '../style.ts';
import { printJson, type Terminal } from '../terminal.ts';
import { chosenSession } from './session-argument.ts';

interface ExecOptions {
  readonly code?: string;
  readonly session?: string;
  readonly keep?: boolean;
  readonly timeout?: number;
  readonly toolCallId?: string;
  readonly outputDir?: string;
}

type CodeResult = Awaited<ReturnType<Client['code']['execute']>>;

/** `troupe code`: runs Python in a notebook session. */
export const codeCommands: CommandGroup = (program, context) => {
  const { terminal, connect, wantsJson } = context;
  const group = program.command('code').description('run Python in a live notebook session');
  const exec = group
    .command('exec')
    .description(
      'run Python in the scratchpad of a session; with marimo._code_mode the code can edit the notebook.\n' +
        'The exit code is 1 when the code fails. Ctrl-C interrupts it.',
    )
    .argument('[file]', 'file with the code; - or no file reads standard input')
    .option('-c, --code <code>', 'the code itself')
    .option('--session <id>', 'id of the session (default: SERVICE_SESSION_ID)')
    .option('--keep', 'keep the names that the code makes for later calls with --keep')
    .addOption(timeoutOption())
    .option('--tool-call-id <id>', 'id that the event execution-completed returns')
    .option('--output-dir <directory>', 'directory for images that the code shows or returns')
    .action(async (file: string | undefined, options: ExecOptions, command) => {
      const client = connect(command);
      const sessionId = chosenSession(options.session, context);
      const source = await sourceFrom(file, options.code, context);
      const interruption = new Interruption(context.input);
      try {
        const { toolCallId, keep, timeout: timeoutS } = options;
        const result = await client.code.execute(sessionId, source, {
          toolCallId,
          keep,
          timeoutS,
          signal: interruption.stop,
        });
        if (wantsJson(command)) printJson(terminal, result);
        else print(result, terminal, context.cwd, options.outputDir);
        if (!result.success) throw new CommandEnd(EXIT.failed);
      } finally {
        interruption[Symbol.dispose]();
      }
    });
  examples(exec, [
    "troupe code exec -c 'df.describe()'",
    'troupe code exec --keep -c \'import polars; sales = polars.read_csv("sales.csv")\'',
    'printf \'import marimo._code_mode as cm\\nasync with cm.get_context() as ctx:\\n    ctx.run_cell(ctx.create_cell("1 + 1"))\\n\' | troupe code exec --json',
    'troupe code exec --session nb_01… edit.py',
  ]);
};

async function sourceFrom(
  file: string | undefined,
  given: string | undefined,
  { cwd, input }: CliContext,
): Promise<string> {
  if (given !== undefined) {
    if (file === undefined) return given;
    throw new CommandFailure('Use -c or a file, not both.', EXIT.usage);
  }
  if (file !== undefined && file !== '-') return readTextFile(file, cwd);
  if (file === undefined && input.isTerminal) {
    throw new CommandFailure('Provide the code with -c CODE, in a file, or on standard input.', EXIT.usage);
  }
  return input.read();
}

/** Prints each output to the stream that the code used, so that both streams can be piped. */
function print(result: CodeResult, terminal: Terminal, cwd: string, directory: string | undefined): void {
  const style = styleOf(terminal.color);
  terminal.printed('out', result.stdout);
  terminal.printed('err', result.stderr);
  terminal.flush();
  for (const { type, message, cellId } of result.errors) {
    const line = message.startsWith(type) ? message : `${type}: ${message}`;
    // A traceback in stderr already ends with the message.
    if (result.stderr.trimEnd().endsWith(message.trimEnd())) continue;
    terminal.err(`${style.red(line)}${cellId === null ? '' : ` (in cell ${cellId})`}\n`);
  }
  const values = [...result.media, ...(result.output === null ? [] : [result.output])];
  if (values.length === 0) return;
  const files = new OutputFiles(directory ?? cwd, cwd);
  const options = showOptions(terminal, (file) => {
    const what = describe(file.mimetype);
    if (directory === undefined) return `[${what}, ${file.bytes.length} bytes; --output-dir saves it]`;
    return `${what} saved: ${files.keep('', 'output', file)}`;
  });
  for (const value of values) {
    const text = outputText(value, options);
    if (text !== '') terminal.out(`${text}\n`);
  }
}
