/** Unmodified marimo: `marimo_runner.py` runs each notebook in a kernel of its own. */
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { copyFileSync, mkdirSync, mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { extname, join } from 'node:path';
import { createInterface } from 'node:readline';
import { fileURLToPath } from 'node:url';
import { unbundle } from '#src/runtime/runs/run-output.ts';
import type { Owner } from '#test/support/server-fixture.ts';
import type { CorpusNotebook } from './corpus.ts';
import { comparable, type Shown, type ShownCell } from './shown-cell.ts';

const RUNNER = fileURLToPath(new URL('../../../test/corpus/marimo_runner.py', import.meta.url));

interface ReportedCell {
  readonly id: string;
  readonly code: string;
  readonly status: string;
  readonly output: Shown | null;
  readonly console: readonly (Shown & { readonly channel: string })[];
}

interface Report {
  readonly error?: string;
  readonly cells?: readonly ReportedCell[];
}

/** The corpus is compared with the way in which marimo's editor opens a notebook, not with its "run all". */
const OPENED = ['own/without-marimo.py'];

/** Runs notebooks one after the other. */
export type Runner = (notebook: CorpusNotebook) => Promise<readonly ShownCell[]>;

/** Starts marimo's runner, which ends with the owner. */
export function startMarimoRunner(owner: Owner, python: string): Runner {
  const base = mkdtempSync(join(tmpdir(), 'troupe-corpus-'));
  const { PATH = '' } = process.env;
  const child = spawn(python, ['-I', RUNNER], {
    env: { PATH, LANG: 'C.UTF-8', HOME: base },
    stdio: ['pipe', 'pipe', 'inherit'],
  });
  const ended = once(child, 'exit');
  owner.after(async () => {
    child.stdin.end();
    await ended;
    rmSync(base, { recursive: true, force: true });
  });
  const lines = createInterface({ input: child.stdout })[Symbol.asyncIterator]();
  let count = 0;
  return async ({ name, ...notebook }) => {
    const folder = join(base, `${++count}`);
    mkdirSync(folder);
    const path = join(folder, `notebook${extname(notebook.path)}`);
    copyFileSync(notebook.path, path);
    child.stdin.write(`${JSON.stringify({ name, path, folder, opens: OPENED.includes(name) })}\n`);
    const { value, done } = await lines.next();
    if (done === true) throw new Error('The runner of marimo has ended.');
    const { error, cells = [] } = JSON.parse(value) as Report;
    if (error !== undefined) throw new Error(`${name}: ${error}`);
    return cells.map(({ output, console, ...cell }) => {
      const outputs = output === null ? [] : shownBy(output);
      const entries = console.flatMap((entry) =>
        entry.channel === 'media'
          ? shownBy(entry).map((shown) => ({ channel: entry.channel, ...shown }))
          : [entry],
      );
      return comparable({ ...cell, outputs, console: entries }, folder);
    });
  };
}

/** Returns an output as a run of ours lists it: one entry for each type of a bundle, none for no value. */
function shownBy({ mimetype, data }: Shown): Shown[] {
  if (mimetype === 'text/plain' && data === '') return [];
  return unbundle({ mimetype, data });
}
