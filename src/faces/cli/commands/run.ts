import { type Command, Option } from 'commander';
import type { CacheMode } from '#src/contract/wire/run.ts';
import type { CommandGroup } from '../command-group.ts';
import { lastServer } from '../credentials.ts';
import { examples } from '../examples.ts';
import { CommandEnd, CommandFailure, EXIT } from '../exit-code.ts';
import { metadataOption } from '../metadata-option.ts';
import { exitCodeOfRun } from '../run/follow-run.ts';
import { Interruption } from '../run/interruption.ts';
import { argumentsOf, parameterOption } from '../run/notebook-arguments.ts';
import { installOption } from '../run/notebook-file.ts';
import { type FrontEnd, frontEndOption, hideCodeOption } from '../run/report.ts';
import { runNotebook } from '../run/run-notebook.ts';
import { timeoutOption } from '../run/timeout-option.ts';
import { printJson } from '../terminal.ts';

interface RunOptions {
  readonly notebook?: string;
  readonly cells?: readonly string[];
  readonly cacheMode: CacheMode;
  readonly parameter: readonly string[];
  readonly strict?: boolean;
  readonly timeout?: number;
  readonly metadata?: Readonly<Record<string, string>>;
  readonly keep?: boolean;
  readonly detach?: boolean;
  readonly rm?: boolean;
  readonly outputDir?: string;
  readonly with: readonly string[];
  readonly withImports?: boolean;
  readonly fetch: readonly string[];
  readonly output: readonly string[];
  readonly frontEnd?: FrontEnd;
  readonly hideCode?: boolean;
  readonly datasource: readonly string[];
  readonly force?: boolean;
  readonly install?: boolean;
  readonly theirs?: boolean;
}

/** `troupe run`: runs a notebook and shows its progress. */
export const run: CommandGroup = (
  program,
  { terminal, input, cwd, passedOn, env, connect, baseUrl, links, wantsJson },
) => {
  const command = program
    .command('run')
    .summary('run a notebook or a notebook file, and show its progress and outputs')
    .description(
      'run a notebook and show its progress and outputs. Ctrl-C cancels the run; a second Ctrl-C leaves at once. Ctrl-\\ leaves the ' +
        'command and the run continues, as with --detach. The command waits up to half a minute for a server that is starting, and up to a ' +
        'minute for a server that stops during the run.\n\n' +
        'The first run of a file makes a notebook, and later runs update that notebook. Its title is the title in the file, or else ' +
        'the name of the file. If the notebook has changes that the file does not have, nothing runs. A session that is open on the notebook ' +
        'is used if it has the same code and arguments. Otherwise the run has a copy of the notebook. With --rm the run has a ' +
        'new notebook, which is deleted afterwards. The exit code tells how the run ended.',
    )
    .argument('[file]', 'notebook file (.py, .ipynb, .md), or id of a notebook')
    .argument('[arguments...]', 'after --: arguments of the notebook, as marimo passes them on')
    .option(
      '--notebook <notebook>',
      'id of a saved notebook; an open session of the notebook is used and stays open',
    )
    .addOption(parameterOption())
    .option('--cells <list>', 'run only these cells: ids or names, separated by commas', splitList)
    .addOption(
      new Option(
        '--cache-mode <mode>',
        'no-cache also runs cells whose results are up to date; no-store also does not save the output',
      )
        .choices(['default', 'no-cache', 'no-store'])
        .default('default'),
    )
    .option(
      '--strict',
      'run nothing if cells define the same name or form a cycle (default: run the other cells)',
    )
    .addOption(timeoutOption())
    .addOption(metadataOption('run'))
    .option('--keep', 'leave the session and its environment open')
    .option(
      '--detach',
      'print the id of the run, and return while the run continues; its session ends after the run',
    )
    .option('--force', 'replace the notebook of the file even if it has changes that the file does not have')
    .option(
      '--theirs',
      "run the file's notebook in its present state on the server, without pushing the file",
    )
    .option(
      '--datasource <slug>',
      'let the notebook use this datasource from now on; may be repeated',
      append,
      [],
    )
    .addOption(installOption())
    .option('--rm', 'delete the imported notebook at the end, with its run')
    .option('--output-dir <directory>', 'directory for images (default: troupe-output/<run>)')
    .option(
      '--with <path[=place]>',
      "store this file, folder or pattern ('*.csv') in the workspace before the run; may be repeated",
      append,
      [],
    )
    .option('--with-imports', 'also upload the modules next to the notebook that it imports')
    .option(
      '--fetch <path>',
      "copy this file, folder or pattern ('plots/*.png') of the workspace here after the run; may be repeated",
      append,
      [],
    )
    .option(
      '-o, --output <file>',
      'write the executed notebook: .html, .pdf, .ipynb, .md or .py; may be repeated',
      append,
      [],
    )
    .addOption(frontEndOption())
    .addOption(hideCodeOption())
    .action(
      async (_file: string | undefined, _arguments: readonly string[], options: RunOptions, cmd: Command) => {
        const [file, another] = cmd.args.slice(0, cmd.args.length - passedOn.length);
        if (another !== undefined)
          throw new CommandFailure(
            `The command runs one notebook. To pass ${another} to the notebook, write it after --.`,
            EXIT.usage,
          );
        refuseWithDetach(options);
        // A notebook may hold secrets. So before anything is sent, a server is named that the user may not expect.
        const last = lastServer(env);
        const url = baseUrl(cmd);
        if (last !== undefined && last !== url && !wantsJson(cmd))
          terminal.err(`on ${url}, not on ${last} of the last sign-in\n`);
        const interruption = new Interruption(input);
        try {
          const finished = await runNotebook({
            client: connect(cmd),
            terminal,
            input,
            cwd,
            interruption,
            quiet: wantsJson(cmd),
            file,
            notebookId: options.notebook,
            cells: options.cells,
            cacheMode: options.cacheMode,
            arguments: argumentsOf(options.parameter, passedOn),
            parameters: options.parameter,
            strict: options.strict === true,
            timeoutS: options.timeout,
            metadata: options.metadata,
            keep: options.keep === true,
            detach: options.detach === true,
            remove: options.rm === true,
            links: links(cmd),
            datasources: options.datasource,
            install: options.install === true,
            force: options.force === true,
            theirs: options.theirs === true,
            outputDir: options.outputDir,
            take: options.with,
            takeImports: options.withImports === true,
            fetch: options.fetch,
            reports: options.output,
            baseUrl: url,
            searchPath: env.PATH,
            frontEnd: options.frontEnd,
            hideCode: options.hideCode,
          });
          if (wantsJson(cmd)) printJson(terminal, finished);
          else if (options.detach === true) terminal.out(`${finished.run.id}\n`);
          if (options.detach === true) return;
          const ended = exitCodeOfRun(finished.run);
          const isLacking = finished.missing.length > 0 || finished.failures.length > 0;
          const exitCode = ended === EXIT.ok && isLacking ? EXIT.failed : ended;
          if (exitCode !== EXIT.ok) throw new CommandEnd(exitCode);
        } finally {
          interruption[Symbol.dispose]();
        }
      },
    );
  examples(command, [
    'troupe run analysis.py',
    'troupe run report.py -p month=3 -p region=eu',
    'troupe run report.py -- --month 3',
    'troupe run --rm --output-dir plots report.ipynb',
    'troupe run --notebook nb_01… --cells load,plot --cache-mode no-cache',
    'troupe run analysis.py --with data/ --with-imports --fetch out.csv -o report.html',
    'troupe run report.py --datasource sales',
    'troupe run analysis.py --json | jq .run.status',
    'troupe runs tail $(troupe run training.py --detach)',
  ]);
};

/** Throws `CommandFailure` if `--detach` comes with an option that needs the end of the run. */
function refuseWithDetach({ detach, rm, output, fetch, outputDir }: RunOptions): void {
  if (detach !== true) return;
  const asked = {
    '--rm': rm === true,
    '--output': output.length > 0,
    '--fetch': fetch.length > 0,
    '--output-dir': outputDir !== undefined,
  };
  const [option] = Object.entries(asked).find(([, isAsked]) => isAsked) ?? [];
  if (option !== undefined)
    throw new CommandFailure(
      `${option} needs the end of the run, but --detach does not wait for the end.`,
      EXIT.usage,
    );
}

function append(value: string, before: readonly string[]): string[] {
  return [...before, value];
}

function splitList(text: string, before: readonly string[] = []): string[] {
  const words = text.split(',').map((word) => word.trim());
  return [...before, ...words.filter((word) => word !== '')];
}
