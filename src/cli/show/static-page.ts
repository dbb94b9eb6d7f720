/**
 * An executed notebook as one HTML file that needs no other file and runs nothing. Its policy forbids scripts and requests, and
 * parts of outputs that could act in spite of the policy are left out, so every such file is safe to open.
 */

import { errorsText } from '#src/outputs/error-text.ts';
import type { Notebook } from '#src/wire/notebook.ts';
import type { Output } from '#src/wire/output.ts';
import type { Run } from '#src/wire/run.ts';
import { safeHtml } from './safe-html.ts';

const STYLE = `body{font:16px/1.5 system-ui,sans-serif;max-width:60rem;margin:2rem auto;padding:0 1rem;color:#1c2024;background:#fff}
pre{overflow-x:auto;padding:.6rem .8rem;border-radius:6px;background:#f4f5f6;font:13px/1.5 ui-monospace,monospace;white-space:pre-wrap}
pre.stderr,pre.error{background:#fdecea}section{margin:1.5rem 0;break-inside:avoid}details pre{margin-top:.3rem}
summary{color:#60646c;cursor:pointer;font-size:.85rem}img,svg{max-width:100%}table{border-collapse:collapse;font-size:.9rem}
td,th{border:1px solid #d9d9e0;padding:.2rem .6rem;text-align:left}footer{color:#60646c;font-size:.85rem}`;

const POLICY =
  "default-src 'none'; img-src data:; media-src data:; font-src data:; style-src 'unsafe-inline'; form-action 'none'";

/** Returns the page. `asset` resolves with the bytes of an output that is kept apart. */
export async function staticPage(
  notebook: Notebook,
  run: Run,
  asset: (assetId: string) => Promise<Uint8Array>,
): Promise<string> {
  const results = new Map(
    (run.output?.parts ?? []).flatMap((part) => (part.type === 'cell-result' ? [[part.cellId, part]] : [])),
  );
  const sections: string[] = [];
  for (const { cell_id, code, options } of notebook.serialization.cells) {
    const result = results.get(cell_id);
    const isHidden = options.hide_code === true || /^\s*mo\.md\(/.test(code);
    const shown: string[] = [];
    for (const output of [...(result?.outputs ?? []), ...(result?.console ?? [])])
      shown.push(await outputHtml(output, asset));
    if (code.trim() === '' && shown.length === 0) continue;
    const source = `<pre><code>${escaped(code)}</code></pre>`;
    sections.push(
      `<section>${isHidden ? `<details><summary>code</summary>${source}</details>` : source}${shown.join('\n')}</section>`,
    );
  }
  const title = notebook.title ?? notebook.id;
  const error = run.error === null ? '' : `<pre class="error">${escaped(run.error.message)}</pre>`;
  return `<!doctype html>
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
}

async function outputHtml(output: Output, asset: (assetId: string) => Promise<Uint8Array>): Promise<string> {
  const { channel, mimetype, text, table, assetId } = output;
  if (table !== undefined) return tableHtml(table);
  const bytes = assetId === undefined ? undefined : await asset(assetId);
  const data = bytes === undefined ? output.data : undefined;
  if (mimetype.startsWith('image/')) return imageHtml(mimetype, bytes ?? data, text);
  const content = bytes === undefined ? data : Buffer.from(bytes).toString('utf8');
  if (mimetype === 'application/vnd.marimo+error')
    return `<pre class="error">${escaped(errorsText(content, text))}</pre>`;
  const isMarkup = mimetype === 'text/html' || mimetype === 'text/markdown';
  // Elements of marimo's own show nothing without its front end: their text does.
  if (isMarkup && typeof content === 'string' && !/<marimo-(?!tex)/.test(content)) return safeHtml(content);
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
