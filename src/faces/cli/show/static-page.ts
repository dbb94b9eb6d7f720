/**
 * An executed notebook as one HTML file that needs no other file and runs nothing. Its policy forbids scripts and requests. Parts
 * of outputs that could act in spite of the policy are left out. So every such file is safe to open.
 */

import { errorsText } from '#src/contract/outputs/error-text.ts';
import type { Notebook } from '#src/contract/wire/notebook.ts';
import type { Output } from '#src/contract/wire/output.ts';
import type { Run } from '#src/contract/wire/run.ts';
import { formulaOf } from './formulas.ts';
import { finalText } from './printed-text.ts';
import { safeHtml } from './safe-html.ts';

const STYLE = `body{font:16px/1.5 system-ui,sans-serif;max-width:60rem;margin:2rem auto;padding:0 1rem;color:#1c2024;background:#fff}
pre{overflow-x:auto;padding:.6rem .8rem;border-radius:6px;background:#f4f5f6;font:13px/1.5 ui-monospace,monospace;white-space:pre-wrap}
pre.stderr,pre.error{background:#fdecea}section{margin:1.5rem 0;break-inside:avoid}details pre{margin-top:.3rem}
summary{color:#60646c;cursor:pointer;font-size:.85rem}img,svg{max-width:100%}table{border-collapse:collapse;font-size:.9rem}
math{font-size:1.1em}td,th{border:1px solid #d9d9e0;padding:.2rem .6rem;text-align:left}footer{color:#60646c;font-size:.85rem}`;

const POLICY =
  "default-src 'none'; img-src data:; media-src data:; font-src data:; style-src 'unsafe-inline'; form-action 'none'";

/** A page, and the outputs of the notebook that are missing from the page. */
export interface StaticPage {
  readonly html: string;
  /** Outputs that need scripts. Only their text is on the page. */
  readonly missing: readonly MissingOutput[];
}

export interface MissingOutput {
  readonly cellId: string;
  /** The cell and the kind of output in words, such as `sales: a chart of plotly`. */
  readonly label: string;
}

/** How a page is made. */
export interface PageOptions {
  /** Resolves with the bytes of an asset. */
  readonly asset: (assetId: string) => Promise<Uint8Array>;
  /** Whether the page has outputs only. */
  readonly hidesCode?: boolean | undefined;
  /** Pictures of outputs that need scripts, by the ids of their cells. */
  readonly pictures?: ReadonlyMap<string, StaticPicture> | undefined;
}

/** A picture of an output that needs scripts. */
export interface StaticPicture {
  readonly png: Uint8Array;
  /** Words in the picture that the text of the output lacks. */
  readonly description?: string;
}

/** Returns the page. */
export async function staticPage(
  notebook: Notebook,
  run: Run,
  { asset, hidesCode = false, pictures }: PageOptions,
): Promise<StaticPage> {
  const results = new Map(
    (run.output?.parts ?? []).flatMap((part) => (part.type === 'cell-result' ? [[part.cellId, part]] : [])),
  );
  const sections: string[] = [];
  const missing: MissingOutput[] = [];
  for (const { cell_id, code, options } of notebook.serialization.cells) {
    const result = results.get(cell_id);
    const isHidden = options.hide_code === true || /^\s*mo\.md\(/.test(code);
    const shown: string[] = [];
    const lost = new Set<string>();
    const place = { asset, lost, picture: pictures?.get(cell_id) };
    for (const output of result?.outputs ?? []) shown.push(await outputHtml(output, place));
    for (const output of joined(result?.console ?? []))
      shown.push(await outputHtml(output, { asset, lost, picture: undefined }));
    const name = typeof options.name === 'string' ? options.name : cell_id;
    for (const kind of lost) missing.push({ cellId: cell_id, label: `${name}: ${kind}` });
    const isEmpty = shown.every((one) => one === '');
    if (isEmpty && (hidesCode || code.trim() === '')) continue;
    const source = `<pre><code>${escaped(code)}</code></pre>`;
    const folded = isHidden ? `<details><summary>code</summary>${source}</details>` : source;
    sections.push(`<section>${hidesCode ? '' : folded}${shown.join('\n')}</section>`);
  }
  const title = notebook.title ?? notebook.id;
  const error = run.error === null ? '' : `<pre class="error">${escaped(run.error.message)}</pre>`;
  const html = `<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta http-equiv="Content-Security-Policy" content="${POLICY}">
<meta name="viewport" content="width=device-width">
<title>${escaped(title)}</title>
<style>${STYLE}</style>
</head>
<body>
<h1>${escaped(title)}</h1>
${error}${sections.join('\n')}
<footer>${escaped(`${run.status}, ${run.finishedAt ?? run.createdAt}, ${run.id}`)}</footer>
</body>
</html>
`;
  return { html, missing };
}

/** Joins consecutive texts of one channel, so that text of a progress bar can overwrite its line. */
function joined(console: readonly Output[]): Output[] {
  const joint: Output[] = [];
  for (const output of console) {
    const last = joint.at(-1);
    const isText = output.mimetype === 'text/plain' && typeof output.data === 'string';
    if (
      isText &&
      last?.mimetype === 'text/plain' &&
      last.channel === output.channel &&
      typeof last.data === 'string'
    )
      joint.splice(-1, 1, { ...last, data: `${last.data}${output.data}` });
    else joint.push(output);
  }
  return joint.map((one) => (typeof one.data === 'string' ? { ...one, data: finalText(one.data) } : one));
}

/** Plots of bokeh, for people. */
export const PLOT_OF_BOKEH = 'a plot of bokeh';

/** Patterns of outputs that scripts draw, with their names for people. */
const DRAWN_BY_SCRIPTS: readonly (readonly [RegExp, string])[] = [
  [/<marimo-plotly|plotly\.js|Plotly\.newPlot/i, 'a chart of plotly'],
  [/<marimo-vega|vega-?lite|vegaEmbed/i, 'a chart of altair'],
  [/<marimo-anywidget/i, 'a widget'],
  [/bokeh/i, PLOT_OF_BOKEH],
  [/<marimo-mpl-interactive/i, 'an interactive figure'],
  [/(?:<|&lt;)script/i, 'a part that needs scripts'],
];

/**
 * Returns the name of the part of an output that only scripts can show, even within a frame; undefined when the output needs no
 * scripts.
 */
function drawnByScripts(mimetype: string, content: unknown): string | undefined {
  if (/^application\/vnd\.vega/.test(mimetype)) return 'a chart of altair';
  if (
    mimetype !== 'text/html' ||
    typeof content !== 'string' ||
    !/(?:<|&lt;)(?:script|marimo-)/i.test(content)
  )
    return undefined;
  return DRAWN_BY_SCRIPTS.find(([pattern]) => pattern.test(content))?.[1];
}

/** The place of an output in the page. */
interface OutputPlace {
  readonly asset: PageOptions['asset'];
  /** Collects the kinds of outputs that cannot be shown. */
  readonly lost: Set<string>;
  /** The picture to show in place of an output that needs scripts. */
  readonly picture: StaticPicture | undefined;
}

async function outputHtml(output: Output, { asset, lost, picture }: OutputPlace): Promise<string> {
  const { channel, mimetype, text, table, assetId } = output;
  if (table !== undefined) return tableHtml(table);
  const bytes = assetId === undefined ? undefined : await asset(assetId);
  const data = bytes === undefined ? output.data : undefined;
  if (mimetype.startsWith('image/')) return imageHtml(mimetype, bytes ?? data, text);
  const content = bytes === undefined ? data : Buffer.from(bytes).toString('utf8');
  if (mimetype === 'application/vnd.marimo+error')
    return `<pre class="error">${escaped(errorsText(content, text))}</pre>`;
  const drawing = drawnByScripts(mimetype, content);
  if (drawing !== undefined && picture !== undefined) {
    const words = [picture.description, text].filter((one) => one !== undefined).join('\n');
    return imageHtml('image/png', picture.png, words);
  }
  if (drawing !== undefined) lost.add(drawing);
  const isMarkup = mimetype === 'text/html' || mimetype === 'text/markdown';
  // Elements of marimo itself show nothing without its front end, so their text is shown.
  if (isMarkup && typeof content === 'string' && !/<marimo-(?!tex)/.test(content))
    return safeHtml(content, formulaOf);
  const plain =
    mimetype === 'text/plain' && typeof content === 'string' ? content : (text ?? textOf(content));
  return plain.trim() === ''
    ? ''
    : `<pre${channel === 'stderr' ? ' class="stderr"' : ''}>${escaped(plain)}</pre>`;
}

function imageHtml(mimetype: string, data: unknown, text: string | undefined): string {
  const alt = escaped(text ?? '');
  if (data instanceof Uint8Array) {
    const encoded = Buffer.from(data).toString('base64');
    return `<p><img alt="${alt}" src="data:${escaped(mimetype)};base64,${encoded}"></p>`;
  }
  if (typeof data !== 'string') return '';
  const source = data.startsWith('data:')
    ? data
    : `data:${mimetype};base64,${mimetype.endsWith('xml') ? Buffer.from(data).toString('base64') : data}`;
  return `<p><img alt="${alt}" src="${escaped(source)}"></p>`;
}

function tableHtml({ columns, rows, rowCount }: NonNullable<Output['table']>): string {
  const head = columns.map(({ name }) => `<th>${escaped(name)}</th>`).join('');
  const body = rows.map(
    (row) => `<tr>${row.map((value) => `<td>${escaped(textOf(value))}</td>`).join('')}</tr>`,
  );
  const rest = rowCount > rows.length ? `<p>${rows.length} of ${rowCount} rows</p>` : '';
  return `<table><thead><tr>${head}</tr></thead><tbody>${body.join('')}</tbody></table>${rest}`;
}

function textOf(value: unknown): string {
  if (value === null || value === undefined) return '';
  return typeof value === 'string' ? value : JSON.stringify(value);
}

function escaped(text: string): string {
  const entities: Readonly<Record<string, string>> = {
    '&': '&amp;',
    '<': '&lt;',
    '>': '&gt;',
    '"': '&quot;',
  };
  return text.replace(/[&<>"]/g, (character) => entities[character] ?? character);
}
