import { Console } from '../output/console.tsx';
import { Output } from '../output/output.tsx';
import { Badge } from '../parts/badge.tsx';
import type { LiveCell } from '../state/notebook.ts';

/** A cell of an open notebook, read-only. */
export function NotebookCell({ cell }: { readonly cell: LiveCell }) {
  const { cellId, name, code, status, isStale, output, printed, runId } = cell;
  return (
    <article class="cell" aria-label={`Cell ${name || cellId}`}>
      <header>
        <code>{name || cellId}</code>
        <Badge state={isStale && status === 'idle' ? 'stale' : status} />
      </header>
      {code !== '' && <pre class="code">{code}</pre>}
      <Console entries={printed} runId={runId} />
      {output != null && <Output output={output} runId={runId} />}
    </article>
  );
}
