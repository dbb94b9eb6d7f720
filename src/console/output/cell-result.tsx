import type { CellResult } from '#src/wire/run.ts';
import { Badge } from '../parts/badge.tsx';
import { duration } from '../parts/words.ts';
import { Console } from './console.tsx';
import { Output } from './output.tsx';

/** The printed text and outputs of a cell in a run, and its status. */
export function CellResultCard({ result, runId }: { readonly result: CellResult; readonly runId: string }) {
  const { cellId, status, outputs, console: printed, durationMs } = result;
  return (
    <article class="cell">
      <header>
        <code>{cellId}</code>
        <Badge state={status} />
        {durationMs !== null && <span class="faint">{duration(durationMs)}</span>}
      </header>
      <Console entries={printed} runId={runId} />
      {outputs.map((output, i) => (
        <Output key={i} output={output} runId={runId} />
      ))}
    </article>
  );
}
