import { readFileSync } from 'node:fs';
import { extname, resolve } from 'node:path';
import type { NotebookFileFormat } from '#src/client/notebooks.ts';
import { CommandFailure, EXIT } from '../exit-code.ts';

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

/** The format that the name of a file promises. Throws `CommandFailure` for any other name. */
function formatOf(name: string): NotebookFileFormat {
  const format = FORMATS[extname(name).toLowerCase()];
  if (format !== undefined) return format;
  const text = `${name} is no notebook by its name: those end in .py, .ipynb or .md.`;
  throw new CommandFailure(text, EXIT.usage);
}

/** Throws `CommandFailure` that says why a file cannot be read. */
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

export function readNotebookFile(name: string, cwd: string, format = formatOf(name)): NotebookFile {
  return { format, content: readTextFile(name, cwd) };
}
