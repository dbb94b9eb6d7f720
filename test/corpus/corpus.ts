/**
 * The notebooks of the corpus: marimo's tutorials and snippets from the installed package, our own,
 * and some from the documentation of other projects.
 */
import { execFileSync } from 'node:child_process';
import { mkdtempSync, readdirSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { basename, extname, join } from 'node:path';
import { fileURLToPath } from 'node:url';

/** The interpreter that kernels and marimo's own runner use unless a test has another. */
export const PYTHON =
  process.env.TROUPE_PYTHON || fileURLToPath(new URL('../../../.venv/bin/python', import.meta.url));

/** A notebook file. */
export interface CorpusNotebook {
  /** The kind and the file name of the notebook, such as `snippets/pandas-3.py`. */
  readonly name: string;
  readonly path: string;
  readonly format: 'py' | 'md';
}

const OWN = fileURLToPath(new URL('../../../test/corpus/notebooks', import.meta.url));

const place = (path: string) => fileURLToPath(new URL(`../../../${path}`, import.meta.url));

/** The examples in docstrings that the tests run: a number of each library, chosen by the seed. */
const EXAMPLES = {
  libraries: ['bokeh', 'ipywidgets', 'statsmodels'],
  seed: process.env.TROUPE_CORPUS_SEED || '20261127',
  count: process.env.TROUPE_CORPUS_EXAMPLES || '3',
};

/** Returns a folder for notebooks of marimo that a program writes, until this process ends. */
function written(python: string, program: string, args: (folder: string) => readonly string[]): string {
  const folder = mkdtempSync(join(tmpdir(), 'troupe-corpus-'));
  process.once('exit', () => rmSync(folder, { recursive: true, force: true }));
  const given = [place(`test/corpus/${program}`), place('src/confined/python'), ...args(folder)];
  execFileSync(python, ['-I', ...given], { stdio: ['ignore', 'ignore', 'inherit'] });
  return folder;
}

/** Returns the notebooks of the documentation of other projects. `python` has these projects. */
export function findDocumentation(python: string): CorpusNotebook[] {
  const { libraries, seed, count } = EXAMPLES;
  const documents = process.env.TROUPE_CORPUS_DOCUMENTS || place('test/corpus/documentation');
  return notebooksIn({
    documentation: written(python, 'convert_documentation.py', (folder) => [documents, folder]),
    docstrings: written(python, 'docstring_notebooks.py', (folder) => [folder, seed, count, ...libraries]),
  });
}

/** Returns all other notebooks of the corpus. */
export function findCorpus(): CorpusNotebook[] {
  const program = 'import marimo, os; print(os.path.dirname(marimo.__file__))';
  const marimo = execFileSync(PYTHON, ['-I', '-c', program], { encoding: 'utf8' }).trim();
  return notebooksIn({
    tutorials: join(marimo, '_tutorials'),
    snippets: join(marimo, '_snippets', 'data'),
    own: OWN,
  });
}

/** Returns the notebooks in folders, by their kinds. */
function notebooksIn(folders: Readonly<Record<string, string>>): CorpusNotebook[] {
  return Object.entries(folders).flatMap(([kind, folder]) =>
    readdirSync(folder)
      .filter(
        (file) => ['.py', '.md'].includes(extname(file)) && !/^(__init__|README)\./.test(basename(file)),
      )
      .sort()
      .map((file) => ({
        name: `${kind}/${file}`,
        path: join(folder, file),
        format: extname(file) === '.md' ? ('md' as const) : ('py' as const),
      })),
  );
}
