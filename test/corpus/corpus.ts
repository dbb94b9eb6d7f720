/** The notebooks of the corpus: marimo's tutorials and snippets, as the installed package brings them, and our own. */
import { execFileSync } from 'node:child_process';
import { readdirSync } from 'node:fs';
import { basename, extname, join } from 'node:path';
import { fileURLToPath } from 'node:url';

/** The interpreter that kernels and marimo's own runner use. */
export const PYTHON =
  process.env.TROUPE_PYTHON || fileURLToPath(new URL('../../../.venv/bin/python', import.meta.url));

/** A notebook file. */
export interface CorpusNotebook {
  /** Its kind and its file name, such as `snippets/pandas-3.py`. */
  readonly name: string;
  readonly path: string;
  readonly format: 'py' | 'md';
}

const OWN = fileURLToPath(new URL('../../../test/corpus/notebooks', import.meta.url));

/** Returns every notebook of the corpus, by name. */
export function findCorpus(): CorpusNotebook[] {
  const program = 'import marimo, os; print(os.path.dirname(marimo.__file__))';
  const marimo = execFileSync(PYTHON, ['-I', '-c', program], { encoding: 'utf8' }).trim();
  const folders = {
    tutorials: join(marimo, '_tutorials'),
    snippets: join(marimo, '_snippets', 'data'),
    own: OWN,
  };
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
