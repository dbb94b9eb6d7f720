import { printedLines } from '#src/contract/outputs/printed-lines.ts';
import { OutputView, type ViewedOutput } from './output.tsx';

/** The text that a cell printed and the figures that it showed, in their order. */
export type ConsoleEntry = ViewedOutput & { readonly channel?: string | undefined };

export function Console(props: {
  readonly entries: readonly ConsoleEntry[];
  readonly runId?: string | undefined;
  readonly sessionId?: string | undefined;
}) {
  const { entries, runId, sessionId } = props;
  if (entries.length === 0) return null;
  return (
    <div class="printed">
      {entries.map((entry, i) =>
        entry.mimetype === 'text/plain' ? (
          <pre key={i} class={entry.channel}>
            {plain(entry)}
          </pre>
        ) : (
          <OutputView key={i} output={entry} runId={runId} sessionId={sessionId} />
        ),
      )}
    </div>
  );
}

function plain({ data, text }: ConsoleEntry): string {
  return printedLines(typeof data === 'string' ? data : (text ?? ''));
}
