import { extname } from 'node:path';
import { Option } from 'commander';
import type { ImportedNotebook, NotebookFileFormat } from '#src/contract/wire/notebook.ts';
import { CommandFailure, EXIT } from '../exit-code.ts';
import { readPlain } from '../plain-path.ts';

/** The content of a notebook file, and its format. */
export interface LocalNotebook {
  readonly format: NotebookFileFormat;
  readonly content: string;
  /** Whether the import turns `pip install` lines of cells into dependencies. */
  readonly install?: boolean;
}

/** Returns the option for the packages of a Jupyter notebook. */
export function installOption(): Option {
  return new Option(
    '--install',
    'turn packages that cells of an .ipynb install with pip into dependencies of the notebook (default: warn)',
  );
}

/** Returns the warnings of an import, as they are shown. */
export function importWarnings(name: string, { warnings = [] }: ImportedNotebook): string[] {
  return warnings.map(({ code, message }) => {
    const advice = code === 'packages_not_installed' ? ' (--install)' : '';
    return `warning: ${name}: ${message}${advice}`;
  });
}

/** The outputs of a smaller notebook are not removed. */
const MIN_OUTPUTS_CHARS = 256 * 1024;

const FORMATS: Readonly<Record<string, NotebookFileFormat>> = {
  '.py': 'py',
  '.ipynb': 'ipynb',
  '.md': 'md',
  '.markdown': 'md',
  '.qmd': 'md',
};

/** Returns the format for the extension of a file. Throws `CommandFailure` for an unknown one. */
export function fileFormatOf(name: string): NotebookFileFormat {
  const format = FORMATS[extname(name).toLowerCase()];
  if (format !== undefined) return format;
  const text = `${name} is not a notebook file: the name must end in .py, .ipynb or .md.`;
  throw new CommandFailure(text, EXIT.usage);
}

/** Returns the text of a file. Throws `CommandFailure` when it cannot be read. */
export function readTextFile(name: string, cwd: string): string {
  const bytes = readBytes(name, cwd);
  try {
    return new TextDecoder('utf-8', { fatal: true }).decode(bytes);
  } catch {
    const advice = `iconv -f latin1 -t utf-8 ${name} converts it if it is Latin-1 (ISO 8859-1)`;
    throw new CommandFailure(`${name} is not UTF-8 text; ${advice}.`, EXIT.usage);
  }
}

/** Returns the bytes of a file. Throws `CommandFailure` when it cannot be read. */
export function readBytes(name: string, cwd: string): Buffer {
  try {
    return readPlain(name, cwd);
  } catch (error) {
    if (error instanceof CommandFailure) throw error;
    const why =
      error instanceof Error && 'code' in error && error.code === 'ENOENT' ? 'There is no' : 'Cannot read';
    const detail = why === 'Cannot read' && error instanceof Error ? `: ${error.message}` : '.';
    throw new CommandFailure(`${why} file ${name}${detail}`, EXIT.usage);
  }
}

/** Returns a Jupyter notebook without its stored outputs, which are not imported and can be large. */
function withoutOutputs(content: string): string {
  if (content.length < MIN_OUTPUTS_CHARS) return content;
  try {
    return JSON.stringify(
      JSON.parse(content, (key, value) => (key === 'outputs' && Array.isArray(value) ? [] : value)),
    );
  } catch {
    return content; // the server reports the place of the mistake
  }
}

/** Returns the notebook in a file. Throws `CommandFailure` when it cannot be read or has an unknown extension. */
export function readNotebookFile(name: string, cwd: string, format = fileFormatOf(name)): LocalNotebook {
  const content = readTextFile(name, cwd);
  return { format, content: format === 'ipynb' ? withoutOutputs(content) : content };
}
