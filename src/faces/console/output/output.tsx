/** An output for people: a table, a picture, HTML in a frame, or text. None of its HTML becomes part of this page. */
import { useSignal } from '@preact/signals';
import { useEffect } from 'preact/hooks';
import { representationFor, type ShownValue } from '#src/contract/outputs/representation.ts';
import { Problem } from '../parts/problem.tsx';
import { valueText } from '../parts/words.ts';
import { useClient, useData } from '../state/data.ts';
import { HtmlFrame } from './html-frame.tsx';
import { TableOutput } from './table-output.tsx';

export interface ViewedOutput extends ShownValue {
  readonly assetId?: string | undefined;
}

interface OutputProps {
  readonly output: ViewedOutput;
  /** The run that has the asset; undefined when the session has it. */
  readonly runId?: string | undefined;
  /** The session whose events name the output. */
  readonly sessionId?: string | undefined;
}

export function OutputView({ output, runId, sessionId }: OutputProps) {
  const { assetId, text, table } = output;
  if (table === undefined && assetId !== undefined)
    return <Asset assetId={assetId} runId={runId} sessionId={sessionId} output={output} />;
  const shown = representationFor(output, 'page');
  switch (shown.kind) {
    case 'table':
      return <TableOutput table={shown.table} />;
    case 'error':
      return <pre class="output error">{shown.text}</pre>;
    case 'text':
      return <pre class="output">{shown.text}</pre>;
    case 'data':
      return <Data mimetype={shown.mimetype} data={shown.data} text={text} />;
  }
}

interface DataProps {
  readonly mimetype: string;
  readonly data: unknown;
  readonly text: string | undefined;
}

function Data({ mimetype, data, text }: DataProps) {
  if (mimetype.startsWith('image/')) return <Picture mimetype={mimetype} data={valueText(data)} alt={text} />;
  if (mimetype === 'text/html' || (mimetype === 'text/markdown' && /^\s*</.test(valueText(data))))
    return <Html html={valueText(data)} text={text} />;
  if (mimetype === 'application/json') return <pre class="output">{indented(data)}</pre>;
  // The text in the event is cut off when it is long, so the text is taken from the data.
  return (
    <pre class="output">{mimetype.startsWith('text/') ? valueText(data) : (text ?? valueText(data))}</pre>
  );
}

function Picture({
  mimetype,
  data,
  alt,
}: {
  readonly mimetype: string;
  readonly data: string;
  readonly alt: string | undefined;
}) {
  // An image runs no scripts and loads nothing, also when it is an SVG.
  const url = data.startsWith('data:image/') ? data : `data:${mimetype},${encodeURIComponent(data)}`;
  return <img class="output" src={url} alt={alt ?? 'A picture'} />;
}

/** The form of HTML in which marimo shows the `repr` of a value. Such an output needs no frame. */
const ONLY_TEXT = /^\s*<pre[^>]*>[^<]*<\/pre>\s*$/;

/**
 * HTML of marimo's own elements needs marimo's front end, so the text of the output is shown
 * instead.
 */
function Html({ html, text }: { readonly html: string; readonly text: string | undefined }) {
  const needsFrontEnd = html.includes('<marimo-');
  if (text !== undefined && ONLY_TEXT.test(html)) return <pre class="output">{text}</pre>;
  return <FramedHtml html={html} text={text} needsFrontEnd={needsFrontEnd} />;
}

interface FramedHtmlProps {
  readonly html: string;
  readonly text: string | undefined;
  readonly needsFrontEnd: boolean;
}

function FramedHtml({ html, text, needsFrontEnd }: FramedHtmlProps) {
  const isText = useSignal(needsFrontEnd && text !== undefined);
  return (
    <div class="output">
      {isText.value ? <pre>{text}</pre> : <HtmlFrame html={html} title={text ?? 'HTML of an output'} />}
      {text !== undefined && text !== '' && (
        <button
          type="button"
          class="quiet small"
          onClick={() => {
            isText.value = !isText.value;
          }}
        >
          {isText.value ? 'Show as HTML' : 'Show as text'}
        </button>
      )}
    </div>
  );
}

function Asset({ assetId, runId, sessionId, output }: OutputProps & { readonly assetId: string }) {
  const client = useClient();
  const url = useSignal<string | undefined>(undefined);
  const asset = useData(
    async (_, signal) => {
      if (runId === undefined && sessionId === undefined) return undefined;
      const { bytes, contentType } = await (sessionId === undefined
        ? client.runs.asset(runId ?? '', assetId, { signal })
        : client.notebookSessions.asset(sessionId, assetId, { signal }));
      return { contentType, blob: new Blob([bytes.slice()], { type: contentType }) };
    },
    [runId, sessionId, assetId],
  );
  const { value } = asset;
  const isImage = value?.contentType.startsWith('image/') === true;
  const content = useData(
    async () => (value === undefined || isImage ? undefined : value.blob.text()),
    [value === undefined, assetId],
  );
  useEffect(() => {
    if (value === undefined) return;
    const made = URL.createObjectURL(value.blob);
    url.value = made;
    return () => URL.revokeObjectURL(made);
  }, [value]);
  if (asset.error !== undefined) return <Problem error={asset.error} retry={asset.reload} />;
  if (isImage && url.value !== undefined)
    return <img class="output" src={url.value} alt={output.text ?? 'A picture'} />;
  if (content.value !== undefined)
    return (
      <OutputView
        output={{ mimetype: output.mimetype, data: content.value, ...(output.text && { text: output.text }) }}
      />
    );
  return <pre class="output">{output.text ?? `${output.mimetype}, an asset of its run`}</pre>;
}

function indented(data: unknown): string {
  return typeof data === 'string' ? data : (JSON.stringify(data, null, 2) ?? '');
}
