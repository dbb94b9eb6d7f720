import { join, resolve } from 'node:path';
import type { Client } from '#src/contract/client/client.ts';
import type { ShowOptions } from '../show/output.ts';
import { OutputFiles } from '../show/output-files.ts';
import { styleOf } from '../style.ts';
import type { Terminal } from '../terminal.ts';
import { type OutputPorts, RunScreen } from './run-screen.ts';

/** How the outputs of a run are shown. */
export interface RunShowOptions {
  readonly terminal: Terminal;
  readonly client: Client;
  readonly cwd: string;
  /** The directory for images; undefined: images are only mentioned. */
  readonly directory: string | undefined;
  /** Returns the run whose outputs are shown. Called when the first output arrives. */
  readonly runId: () => string;
  /** Returns the session of the run. */
  readonly sessionId: () => string;
}

const MAX_ROWS = 20;

/** Returns the directory for the images of a run: `asked` if it was given, or the default. */
export function outputDirectory(cwd: string, asked: string | undefined, runId: string): string {
  return asked === undefined ? join(cwd, 'troupe-output', runId) : resolve(cwd, asked);
}

/** Returns how values are shown on `terminal`. `keep` stores an output that is not text and returns a text for it. */
export function showOptions(terminal: Terminal, keep: ShowOptions['keep']): ShowOptions {
  const { color, columns } = terminal;
  return { style: styleOf(color), color, limits: { columns, rows: MAX_ROWS }, keep };
}

/** Returns the screen for one run, and a function that returns the files written so far. */
export function runScreen(options: RunShowOptions): { screen: RunScreen; files: () => OutputFiles['kept'] } {
  const { terminal, client, cwd, directory, runId, sessionId } = options;
  const style = styleOf(terminal.color);
  let files: OutputFiles | undefined;
  const ports: OutputPorts = {
    show: (cellId, label) =>
      showOptions(terminal, (file) => {
        const what = describe(file.mimetype);
        if (directory === undefined) return `[${what}, ${file.bytes.length} bytes; --output-dir saves it]`;
        // The server chooses the id of the run, but must not choose a place on this machine.
        files ??= new OutputFiles(directory.replace('{run}', runId().replace(/\W/g, '_')), cwd);
        return `${what} saved: ${style.cyan(files.keep(cellId, label, file))}`;
      }),
    asset: (assetId) => client.runs.asset(runId(), assetId),
    liveAsset: (assetId) => client.notebookSessions.asset(sessionId(), assetId),
  };
  return { screen: new RunScreen(terminal, style, ports), files: () => files?.kept ?? [] };
}

/** Returns a word for an output of this type. */
export function describe(mimetype: string): string {
  if (mimetype.startsWith('image/')) return 'image';
  if (/vega|plotly/.test(mimetype)) return 'chart';
  if (mimetype === 'text/html') return 'page';
  if (mimetype === 'application/octet-stream') return 'file';
  return /^(audio|video)\//.exec(mimetype)?.[1] ?? mimetype;
}
