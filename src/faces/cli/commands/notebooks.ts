import { extname, resolve } from 'node:path';
import { Option } from 'commander';
import type { NotebookFields, NotebookFileFormat, NotebookSummary } from '#src/contract/wire/notebook.ts';
import { collect } from '../collect.ts';
import type { CliContext, CommandGroup } from '../command-group.ts';
import { examples } from '../examples.ts';
import { CommandFailure, EXIT } from '../exit-code.ts';
import { readJsonInput } from '../json-input.ts';
import { metadataFilterOption, metadataOption } from '../metadata-option.ts';
import { writePlain } from '../plain-path.ts';
import { importWarnings, installOption, readNotebookFile } from '../run/notebook-file.ts';
import { idOfNotebook, pullFile, pushFile, syncContextOf } from '../run/notebook-sync.ts';
import { titleOfFile } from '../run/notebook-title.ts';
import { notebookText } from '../show/notebook.ts';
import { styleOf } from '../style.ts';
import { type ListColumn, printJson, printList } from '../terminal.ts';
import {
  metadata as metadataCommands,
  NOTEBOOK_ARGUMENT,
  notebookDatasources,
  secrets,
  variables,
} from './notebook-settings.ts';
import { versions } from './notebook-versions.ts';

const COLUMNS: readonly ListColumn<NotebookSummary>[] = [
  { title: 'id', of: ({ id }) => id },
  { title: 'title', of: ({ title }) => title },
  { title: 'cells', of: ({ cellCount }) => String(cellCount) },
  { title: 'updated', of: ({ updatedAt }) => updatedAt },
];

interface ListOptions {
  readonly title?: string;
  readonly newest?: boolean;
  readonly metadata?: string;
}

interface MetadataOptions {
  readonly metadata?: Readonly<Record<string, string>>;
}

interface PushCommandOptions {
  readonly notebook?: string;
  readonly expected?: string;
  readonly force?: boolean;
  readonly install?: boolean;
}

interface ImportOptions {
  readonly format?: NotebookFileFormat;
  readonly install?: boolean;
}

type ExportFormat = NotebookFileFormat | 'html';

const EXPORT_FORMATS: readonly ExportFormat[] = ['py', 'ipynb', 'md', 'html'];

/** `troupe notebooks`: saved notebooks. */
export const notebookCommands: CommandGroup = (program, context) => {
  const { terminal, cwd, connect, wantsJson } = context;
  const group = program.command('notebooks').description('saved notebooks');
  const list = group
    .command('list')
    .description('list the notebooks, oldest first')
    .option('--title <text>', 'only notebooks whose title contains the text; case does not matter')
    .option('--newest', 'begin with the newest')
    .addOption(metadataFilterOption())
    .action(async ({ title, newest, metadata }: ListOptions, command) => {
      const order = newest === true ? 'desc' : 'asc';
      const found = connect(command).notebooks.each({ title, metadata, order });
      printList(terminal, await collect(found), COLUMNS, wantsJson(command));
    });
  examples(list, [
    'troupe notebooks list',
    'troupe notebooks list --title sales --newest',
    'troupe notebooks list --metadata project=sales',
    "troupe notebooks list --json | jq -r '.[].id'",
  ]);

  const create = group
    .command('create')
    .description('create a notebook: an empty one, or one from JSON with the fields of the API')
    .argument(
      '[file]',
      'JSON with any of title, serialization, datasourceSlugs, variables, metadata; - reads standard input',
    )
    .addOption(metadataOption('notebook'))
    .action(async (file: string | undefined, { metadata }: MetadataOptions, command) => {
      const fields = await fieldsFrom(file, context);
      const notebook = await connect(command).notebooks.create(
        metadata === undefined ? fields : { ...fields, metadata },
      );
      if (wantsJson(command)) printJson(terminal, notebook);
      else terminal.out(`${notebook.id}\n`);
    });
  examples(create, [
    'troupe notebooks create',
    'troupe notebooks create fields.json',
    'troupe notebooks create --metadata project=sales',
    'jq . fields.json | troupe notebooks create -',
  ]);

  const show = group
    .command('show')
    .description('show a notebook and the code of its cells')
    .argument('<notebook>', NOTEBOOK_ARGUMENT)
    .action(async (name: string, _, command) => {
      const id = await idOfNotebook(syncContextOf(context, command), name);
      const notebook = await connect(command).notebooks.get(id);
      if (wantsJson(command)) printJson(terminal, notebook);
      else terminal.out(notebookText(notebook, styleOf(terminal.color)));
    });
  examples(show, [
    'troupe notebooks show nb_01…',
    'troupe notebooks show report.py',
    "troupe notebooks show nb_01… --json | jq '.serialization.cells'",
  ]);

  const importing = group
    .command('import')
    .description('import each file as a new notebook, and print the ids')
    .argument('<file...>', 'notebook files: .py, .ipynb or .md; - reads standard input and needs --format')
    .addOption(
      new Option('--format <format>', 'format of the files (default: by their extensions)').choices([
        'py',
        'ipynb',
        'md',
      ]),
    )
    .addOption(installOption())
    .action(async (files: readonly string[], options: ImportOptions, command) => {
      const client = connect(command);
      const made = [];
      for (const file of files) {
        const read = await fileFrom(file, options.format, context);
        const title = file === '-' ? {} : { title: titleOfFile(file, read) };
        const install = options.install === true ? { install: true } : {};
        const notebook = await client.notebooks.import({ ...read, ...title, ...install });
        for (const text of importWarnings(file, notebook)) terminal.err(`${text}\n`);
        made.push(notebook);
        if (!wantsJson(command)) terminal.out(`${notebook.id}\n`);
      }
      if (wantsJson(command)) printJson(terminal, made);
    });
  examples(importing, [
    'troupe notebooks import analysis.py',
    'troupe notebooks import *.ipynb',
    'curl … | troupe notebooks import --format py -',
  ]);

  const push = group
    .command('push')
    .description(
      'push a file to its notebook, or to a new one if there is none. The push is refused with the differences when the ' +
        'notebook has changes that the file does not have.',
    )
    .argument('<file>', 'notebook file: .py, .ipynb or .md')
    .option('--notebook <notebook>', 'id of the notebook to change, with any title')
    .option('--expected <updatedAt>', 'refuse the push only if the notebook was changed after this time')
    .addOption(installOption())
    .option('--force', 'replace the notebook even if it has changes that the file does not have')
    .action(async (file: string, options: PushCommandOptions, command) => {
      const { notebook, outcome } = await pushFile(
        syncContextOf(context, command),
        file,
        { ...readNotebookFile(file, cwd), ...(options.install === true ? { install: true } : {}) },
        {
          notebookId: options.notebook,
          expectedUpdatedAt: options.expected,
          force: options.force === true,
        },
      );
      if (wantsJson(command)) printJson(terminal, { ...notebook, isNew: outcome === 'created' });
      else {
        terminal.out(`${notebook.id}\n`);
        terminal.err(outcome === 'same' ? 'nothing has changed\n' : `${outcome} at ${notebook.updatedAt}\n`);
      }
    });
  examples(push, [
    'troupe notebooks push analysis.py',
    'troupe notebooks push analysis.py --notebook nb_01…',
    'troupe notebooks push analysis.py --force',
  ]);

  const pull = group
    .command('pull')
    .description(
      'pull the notebook of a file into the file. The pull is refused with the differences when the file has changes ' +
        'that the notebook does not have.',
    )
    .argument('<file>', 'notebook file: .py, .ipynb or .md')
    .option('--notebook <notebook>', 'id of the notebook, with any title')
    .option('--theirs', 'replace the file even if it has changes that the notebook does not have')
    .action(async (file: string, options: { notebook?: string; theirs?: boolean }, command) => {
      const { notebook, isNew } = await pullFile(syncContextOf(context, command), file, {
        notebookId: options.notebook,
        theirs: options.theirs === true,
      });
      if (wantsJson(command)) printJson(terminal, { ...notebook, path: resolve(cwd, file), isNew });
      else if (isNew) terminal.err(`${file}: ${notebook.id}, updated at ${notebook.updatedAt}\n`);
      else terminal.err(`${file}: ${notebook.id} has nothing new\n`);
    });
  examples(pull, [
    'troupe notebooks pull analysis.py',
    'troupe notebooks pull copy.py --notebook nb_01…',
    'troupe notebooks pull analysis.py --theirs',
  ]);

  versions(group, context);
  variables(group, context);
  metadataCommands(group, context);
  secrets(group, context);
  notebookDatasources(group, context);

  const exporting = group
    .command('export')
    .description('write a notebook to a file, with the outputs of its cells if the format can hold them')
    .argument('<notebook>', NOTEBOOK_ARGUMENT)
    .addOption(
      new Option('--format <format>', 'format of the file (default: by its extension, else py)').choices(
        EXPORT_FORMATS,
      ),
    )
    .option('-o, --output <file>', 'file to write (default: standard output)')
    .action(async (name: string, options: { format?: ExportFormat; output?: string }, command) => {
      const id = await idOfNotebook(syncContextOf(context, command), name);
      const format = options.format ?? formatByName(options.output) ?? 'py';
      const { bytes } = await connect(command).notebooks.export(id, format);
      if (options.output === undefined) {
        const content = Buffer.from(bytes).toString('utf8');
        if (wantsJson(command)) printJson(terminal, { id, format, content });
        else terminal.out(content);
        return;
      }
      writePlain(options.output, cwd, bytes);
      if (wantsJson(command))
        printJson(terminal, { id, format, path: resolve(cwd, options.output), bytes: bytes.length });
      else terminal.err(`${options.output}: ${bytes.length} bytes\n`);
    });
  examples(exporting, [
    'troupe notebooks export nb_01… > analysis.py',
    'troupe notebooks export nb_01… -o report.html',
    'troupe notebooks export training.py -o training.ipynb',
  ]);

  const deleting = group
    .command('delete')
    .description(
      'delete notebooks for ever, with their runs, outputs, versions and conversations; files stay',
    )
    .argument('<notebook...>', 'ids of the notebooks')
    .action(async (ids: readonly string[], _, command) => {
      const client = connect(command);
      for (const id of ids) {
        await client.notebooks.delete(id);
        if (!wantsJson(command)) terminal.out(`${id} is deleted.\n`);
      }
      if (wantsJson(command))
        printJson(
          terminal,
          ids.map((id) => ({ id, deleted: true })),
        );
    });
  examples(deleting, ['troupe notebooks delete nb_01…']);
};

async function fieldsFrom(file: string | undefined, context: CliContext): Promise<NotebookFields> {
  return file === undefined ? {} : ((await readJsonInput(file, context)) as NotebookFields);
}

async function fileFrom(name: string, format: NotebookFileFormat | undefined, { cwd, input }: CliContext) {
  if (name !== '-') return readNotebookFile(name, cwd, format);
  if (format === undefined)
    throw new CommandFailure('Standard input has no extension: use --format.', EXIT.usage);
  return { format, content: await input.read() };
}

function formatByName(name: string | undefined): ExportFormat | undefined {
  if (name === undefined || extname(name) === '') return undefined;
  const format = EXPORT_FORMATS.find((known) => extname(name) === `.${known}`);
  if (format !== undefined) return format;
  const made = EXPORT_FORMATS.map((known) => `.${known}`).join(', ');
  throw new CommandFailure(`A notebook cannot be written as ${extname(name)}, only as ${made}.`, EXIT.usage);
}
