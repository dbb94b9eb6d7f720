import { readFileSync } from 'node:fs';
import { extname, resolve } from 'node:path';
import type { NotebookFileFormat } from '#src/wire/notebook.ts';
import { CommandFailure, EXIT } from '../exit-code.ts';

/** The content of a notebook file, and its format. */
export interface NotebookFile {
  readonly format: NotebookFileFormat;
  readonly content: string;
}

const FORMATS: Readonly<Record<string, NotebookFileFormat>> = {
  '.py': 'py',
  '.ipynb': 'ipynb',
  '.md': 'md',
  '.markdown': 'md',
  '.qmd': 'md',
};

/** Returns the format for the extension of a file. Throws `CommandFailure` for an unknown one. */
function formatOf(name: string): NotebookFileFormat {
  const format = FORMATS[extname(name).toLowerCase()];
  if (format !== undefined) return format;
  const text = `${name} is not a notebook file: the name must end in .py, .ipynb or .md.`;
  throw new CommandFailure(text, EXIT.usage);
}

/** Returns the text of a file. Throws `CommandFailure` when it cannot be read. */
export function readTextFile(name: string, cwd: string): string {
  try {
    return readFileSync(resolve(cwd, name), 'utf8');
  } catch (error) {
    const why =
      error instanceof Error && 'code' in error && error.code === 'ENOENT' ? 'There is no' : 'Cannot read';
    const detail = why === 'Cannot read' && error instanceof Error ? `: ${error.message}` : '.';
    throw new CommandFailure(`${why} file ${name}${detail}`, EXIT.usage);
  }
}

/** Returns the notebook in a file. Throws `CommandFailure` when it cannot be read or has an unknown extension. */
export function readNotebookFile(name: string, cwd: string, format = formatOf(name)): NotebookFile {
  return { format, content: readTextFile(name, cwd) };
}
