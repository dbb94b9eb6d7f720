import { join, resolve } from 'node:path';
import type { Client } from '#src/client/client.ts';
import type { ShowOptions } from '../show/output.ts';
import { OutputFiles } from '../show/output-files.ts';
import { styleOf } from '../style.ts';
import type { Terminal } from '../terminal.ts';
import { type OutputPorts, RunScreen } from './run-screen.ts';

export interface RunShowOptions {
  readonly terminal: Terminal;
  readonly client: Client;
  readonly cwd: string;
  /** Where images go. Undefined: nowhere, they are only named. */
  readonly directory: string | undefined;
  /** The run whose outputs are shown; asked when the first of them comes. */
  readonly runId: () => string;
}

const ROW_LIMIT = 20;

/** Where the images of a run go unless something else was said. */
export function outputDirectory(cwd: string, asked: string | undefined, runId: string): string {
  return asked === undefined ? join(cwd, 'troupe-output', runId) : resolve(cwd, asked);
}

/** How values are shown on `terminal`; `keep` answers what stands for what is no text. */
export function showOptions(terminal: Terminal, keep: ShowOptions['keep']): ShowOptions {
  const { color, columns } = terminal;
  return { style: styleOf(color), color, limits: { columns, rows: ROW_LIMIT }, keep };
}

/** A screen for one run, and the files that it has written. */
export function runScreen(options: RunShowOptions): { screen: RunScreen; files: () => OutputFiles['kept'] } {
  const { terminal, client, cwd, directory, runId } = options;
  const style = styleOf(terminal.color);
  let files: OutputFiles | undefined;
  const ports: OutputPorts = {
    show: (cellId, label) =>
      showOptions(terminal, (file) => {
        const what = describe(file.mimetype);
        if (directory === undefined) return `[${what}, ${file.bytes.length} bytes; --output-dir saves it]`;
        files ??= new OutputFiles(directory.replace('{run}', runId()), cwd);
        return `${what} saved: ${style.cyan(files.keep(cellId, label, file))}`;
      }),
    asset: (assetId) => client.runs.asset(runId(), assetId),
  };
  return { screen: new RunScreen(terminal, style, ports), files: () => files?.kept ?? [] };
}

export function describe(mimetype: string): string {
  if (mimetype.startsWith('image/')) return 'image';
  return /vega|plotly/.test(mimetype) ? 'chart' : mimetype;
}
