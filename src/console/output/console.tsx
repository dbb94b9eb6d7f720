import { Output, type ShownOutput } from './output.tsx';

/** What was printed, and the figures that were shown meanwhile. */
export type ConsoleEntry = ShownOutput & { readonly channel?: string | undefined };

export function Console(props: {
  readonly entries: readonly ConsoleEntry[];
  readonly runId?: string | undefined;
}) {
  const { entries, runId } = props;
  if (entries.length === 0) return null;
  return (
    <div class="printed">
      {entries.map((entry, i) =>
        entry.mimetype === 'text/plain' ? (
          <pre key={i} class={entry.channel}>
            {plain(entry)}
          </pre>
        ) : (
          <Output key={i} output={entry} runId={runId} />
        ),
      )}
    </div>
  );
}

/** Escape sequences of terminals: colours, which say nothing here, and what would move a cursor. */
// biome-ignore lint/suspicious/noControlCharactersInRegex: that is what they begin with
const ESCAPES = /\u001b(?:\[[0-9;?]*[ -/]*[@-~]|\][^\u0007\u001b]*(?:\u0007|\u001b\\)|[@-Z\\-_])/g;

function plain({ data, text }: ConsoleEntry): string {
  return (typeof data === 'string' ? data : (text ?? '')).replace(ESCAPES, '');
}
