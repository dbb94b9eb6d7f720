/** The executed notebook as a file to hand on. */
import { accessSync, constants, statSync, writeFileSync } from 'node:fs';
import { dirname, extname, resolve } from 'node:path';
import { Option } from 'commander';
import type { Client } from '#src/client/client.ts';
import { makeFolder } from '#src/core/make-folder.ts';
import type { Notebook } from '#src/wire/notebook.ts';
import type { Run } from '#src/wire/run.ts';
import { CommandFailure, EXIT } from '../exit-code.ts';
import { staticPage } from '../show/static-page.ts';
import { findBrowser, printPdf } from './pdf.ts';

const FRONT_ENDS = ['none', 'server', 'cdn'] as const;

/** The place of an HTML file's front end: in none, a static page, or loaded from the server or a public CDN. */
export type FrontEnd = (typeof FRONT_ENDS)[number];

const FORMATS = { '.html': 'html', '.pdf': 'pdf', '.ipynb': 'ipynb', '.md': 'md', '.py': 'py' } as const;

/** A file that was written. */
export interface WrittenReport {
  readonly path: string;
  readonly bytes: number;
}

/** The report to write, and its source. */
export interface ReportRequest {
  readonly client: Client;
  readonly cwd: string;
  /** The folders in which programs are searched. */
  readonly searchPath: string | undefined;
  readonly report: string;
  readonly frontEnd: FrontEnd | undefined;
  readonly notebook: Notebook;
  readonly run: Run;
  readonly signal: AbortSignal;
}

/** Returns the option of commands that write HTML. */
export function frontEndOption(): Option {
  return new Option(
    '--front-end <where>',
    'of an .html file: none, so that it is static and opens anywhere (default), or loaded from the server or a public CDN',
  ).choices(FRONT_ENDS);
}

/**
 * Makes the folder of a report. Throws `CommandFailure` for an unknown format, one that this machine cannot make, and a file that
 * cannot be written: the user must learn that before a run that may take hours.
 */
export function checkReport(name: string, cwd: string, searchPath: string | undefined): void {
  if (formatOf(name) === 'pdf') findBrowser(searchPath);
  const path = resolve(cwd, name);
  try {
    makeFolder(dirname(path));
    const present = statSync(path, { throwIfNoEntry: false });
    if (present?.isDirectory() === true) throw new Error('it is a folder');
    accessSync(present === undefined ? dirname(path) : path, constants.W_OK);
  } catch (error) {
    const why = error instanceof Error ? error.message : String(error);
    throw new CommandFailure(`${name} cannot be written: ${why}.`, EXIT.usage);
  }
}

/** Writes the notebook as the run has left it. Resolves with the path and the size of the file. */
export async function writeReport(request: ReportRequest): Promise<WrittenReport> {
  const { client, cwd, report, frontEnd = 'none', notebook, run, signal } = request;
  const format = formatOf(report);
  const path = resolve(cwd, report);
  let bytes: Uint8Array;
  if (format === 'pdf' || (format === 'html' && frontEnd === 'none')) {
    const asset = async (assetId: string) => (await client.runs.asset(run.id, assetId, { signal })).bytes;
    const page = await staticPage(notebook, run, asset);
    bytes =
      format === 'pdf' ? await printPdf(findBrowser(request.searchPath), page, signal) : Buffer.from(page);
  } else {
    const options = format === 'html' && frontEnd !== 'none' ? { frontEnd, signal } : { signal };
    bytes = (await client.notebooks.export(notebook.id, format, options)).bytes;
  }
  writeFileSync(path, bytes);
  return { path: report, bytes: bytes.byteLength };
}

function formatOf(name: string): (typeof FORMATS)[keyof typeof FORMATS] {
  const ending = extname(name).toLowerCase();
  if (Object.hasOwn(FORMATS, ending)) return FORMATS[ending as keyof typeof FORMATS];
  throw new CommandFailure(
    `${name} cannot be written: the name must end in .html, .pdf, .ipynb, .md or .py.`,
    EXIT.usage,
  );
}
