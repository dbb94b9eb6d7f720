/** The executed notebook as a file for other people. */
import { accessSync, constants, statSync } from 'node:fs';
import { dirname, extname } from 'node:path';
import { Option } from 'commander';
import { makeFolder } from '#src/base/os/make-folder.ts';
import type { Client } from '#src/contract/client/client.ts';
import type { Notebook } from '#src/contract/wire/notebook.ts';
import type { Run } from '#src/contract/wire/run.ts';
import { CommandFailure, EXIT } from '../exit-code.ts';
import { plainPath, writePlain } from '../plain-path.ts';
import { PLOT_OF_BOKEH, type StaticPage, staticPage } from '../show/static-page.ts';
import { readBokehScripts } from './bokeh-scripts.ts';
import { type CellPictures, drawCells } from './cell-pictures.ts';
import { findBrowser } from './confined-browser.ts';
import { printPdf, requireBrowser } from './pdf.ts';

const FRONT_ENDS = ['none', 'server', 'cdn'] as const;

/** The front end of an HTML file: none (a static page), or one loaded from the server or a public CDN. */
export type FrontEnd = (typeof FRONT_ENDS)[number];

const FORMATS = { '.html': 'html', '.pdf': 'pdf', '.ipynb': 'ipynb', '.md': 'md', '.py': 'py' } as const;

/** A file that was written. */
export interface WrittenReport {
  readonly path: string;
  readonly bytes: number;
  /** Outputs of which only the text is in the file: the cell and the kind of output. */
  readonly missing?: readonly string[];
  /** Why outputs that need scripts could not be drawn. */
  readonly why?: string;
}

/** The static page of a run, and why outputs that need scripts could not be drawn. */
export type ReportPage = StaticPage & Pick<CellPictures, 'fault'>;

/** The run whose page is made. */
export interface ReportPageRequest {
  readonly client: Client;
  /** The address of the server. */
  readonly baseUrl: string;
  /** The folders in which programs are searched. */
  readonly searchPath: string | undefined;
  /** Whether the page has outputs only. */
  readonly hideCode?: boolean | undefined;
  readonly notebook: Notebook;
  readonly run: Run;
  readonly signal: AbortSignal;
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
  /** Returns the static page, which HTML and PDF share. */
  readonly page: () => Promise<ReportPage>;
  readonly signal: AbortSignal;
}

/** Returns the option of commands that write HTML. */
export function frontEndOption(): Option {
  return new Option(
    '--front-end <where>',
    'front end of an .html file: none (default), for a static page that opens anywhere, or loaded from the server or a public CDN',
  ).choices(FRONT_ENDS);
}

/** Returns the option that writes reports without code. */
export function hideCodeOption(): Option {
  return new Option('--hide-code', 'write .html and .pdf files without the code of cells');
}

/**
 * Makes the folder of a report. Throws `CommandFailure` for an unknown format, a format that this machine cannot make, and a file
 * that cannot be written. The user must learn of these before a run that may take hours.
 */
export function checkReport(name: string, cwd: string, searchPath: string | undefined): void {
  if (formatOf(name) === 'pdf') requireBrowser(searchPath);
  const path = plainPath(name, cwd);
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
  const { client, cwd, report, frontEnd = 'none', notebook, signal } = request;
  const format = formatOf(report);
  if (format === 'pdf' || (format === 'html' && frontEnd === 'none')) {
    const { html, missing, fault } = await request.page();
    const bytes =
      format === 'pdf' ? await printPdf(requireBrowser(request.searchPath), html, signal) : Buffer.from(html);
    writePlain(report, cwd, bytes);
    const lost = missing.map(({ label }) => label);
    const about = lost.length === 0 ? {} : { missing: lost, ...(fault === undefined ? {} : { why: fault }) };
    return { path: report, bytes: bytes.byteLength, ...about };
  }
  const options = format === 'html' && frontEnd !== 'none' ? { frontEnd, signal } : { signal };
  const { bytes } = await client.notebooks.export(notebook.id, format, options);
  writePlain(report, cwd, bytes);
  return { path: report, bytes: bytes.byteLength };
}

/** Resolves with the static page. If outputs that need scripts could not be drawn, the result has the reason. */
export async function pageWithPictures(request: ReportPageRequest): Promise<ReportPage> {
  const { client, baseUrl, notebook, run, hideCode: hidesCode, searchPath, signal } = request;
  const asset = async (assetId: string) => (await client.runs.asset(run.id, assetId, { signal })).bytes;
  const plain = await staticPage(notebook, run, { asset, hidesCode });
  if (plain.missing.length === 0) return plain;
  const browser = findBrowser(searchPath);
  if (browser === undefined)
    return { ...plain, fault: 'charts are drawn by Chromium, Chrome or Edge, which is not installed here' };
  const exported = await client.notebooks.export(notebook.id, 'html', { frontEnd: 'server', signal });
  const html = Buffer.from(exported.bytes).toString('utf8');
  const cellIds = [...new Set(plain.missing.map(({ cellId }) => cellId))];
  const bokeh = await readBokehScripts({ client, notebookId: notebook.id, html, signal });
  const { scripts } = bokeh;
  const { pictures, fault } = await drawCells({ browser, html, baseUrl, cellIds, scripts, signal });
  const page = await staticPage(notebook, run, { asset, hidesCode, pictures });
  const lacksPlots = page.missing.some(({ label }) => label.endsWith(PLOT_OF_BOKEH));
  const why = fault ?? (lacksPlots ? bokeh.fault : undefined);
  return why === undefined ? page : { ...page, fault: why };
}

function formatOf(name: string): (typeof FORMATS)[keyof typeof FORMATS] {
  const ending = extname(name).toLowerCase();
  if (Object.hasOwn(FORMATS, ending)) return FORMATS[ending as keyof typeof FORMATS];
  throw new CommandFailure(
    `${name} cannot be written: the name must end in .html, .pdf, .ipynb, .md or .py.`,
    EXIT.usage,
  );
}
