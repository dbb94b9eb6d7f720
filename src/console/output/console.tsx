import { Output, type ShownOutput } from './output.tsx';

/** The text that a cell printed, and the figures that it showed in between. */
export type ConsoleEntry = ShownOutput & { readonly channel?: string | undefined };

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
          <Output key={i} output={entry} runId={runId} sessionId={sessionId} />
        ),
      )}
    </div>
  );
}

/** Escape sequences of terminals: colours, which are not shown here, and movements of the cursor. */
// biome-ignore lint/suspicious/noControlCharactersInRegex: that is what they begin with
const ESCAPES = /\u001b(?:\[[0-9;?]*[ -/]*[@-~]|\][^\u0007\u001b]*(?:\u0007|\u001b\\)|[@-Z\\-_])/g;

function plain({ data, text }: ConsoleEntry): string {
  const printed = typeof data === 'string' ? data : (text ?? '');
  return printed.replace(ESCAPES, '').split('\n').map(asInTerminal).join('\n');
}

/** Returns a line as a terminal shows it: text after a carriage return replaces the text before it, as progress bars do. */
function asInTerminal(line: string): string {
  let end = line.length;
  while (line[end - 1] === '\r') end--;
  return end === 0 ? '' : line.slice(line.lastIndexOf('\r', end - 1) + 1, end);
}
