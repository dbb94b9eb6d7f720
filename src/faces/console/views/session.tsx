import { Console } from '../output/console.tsx';
import { OutputView } from '../output/output.tsx';
import { Action } from '../parts/action.tsx';
import { Badge } from '../parts/badge.tsx';
import { Loading } from '../parts/empty.tsx';
import { OpenPageAction } from '../parts/open-page.tsx';
import { Problem } from '../parts/problem.tsx';
import { ViewHead } from '../parts/view-head.tsx';
import { bytes, duration } from '../parts/words.ts';
import { useClient, useData } from '../state/data.ts';
import { type LiveCell, useNotebook } from '../state/notebook.ts';
import { useActor } from '../state/one-actor.ts';
import { here } from '../state/route.ts';
import { useKernels } from './kernels.tsx';
import { NotebookVersions } from './notebook-versions.tsx';

/** One notebook session, live: its cells with code and outputs, and the actions of the caller. */
export function SessionView({ id }: { readonly id: string }) {
  const client = useClient();
  const { notebook, error } = useNotebook(id);
  const saved = useData((_, signal) => client.notebooks.get(id, { signal }), [id]);
  const actor = useActor('notebook-session', id);
  const [kernel] = useKernels({ sessionId: id }).items ?? [];
  const title = saved.value?.title ?? id;
  const path = actor.value?.path;
  const isAsleep = path === 'dormant';
  const runId = notebook?.runId ?? null;
  return (
    <section class="view">
      <ViewHead
        title={title}
        aside={path !== undefined && <Badge state={path} />}
        actions={
          <>
            <OpenPageAction notebookId={id} />
            {runId !== null && (
              <Action label="Cancel the run" isDanger run={() => client.runs.cancel(runId)} />
            )}
            {isAsleep ? (
              <Action label="Wake" run={() => client.notebookSessions.wake(id)} onDone={actor.reload} />
            ) : (
              <Action
                label="Hibernate"
                confirm="The kernel ends and its variables are lost; cells and outputs stay."
                run={() => client.notebookSessions.hibernate(id)}
                onDone={actor.reload}
              />
            )}
            <Action
              label="Close"
              isDanger
              confirm="The kernel ends; the notebook and its runs stay."
              run={() => client.notebookSessions.close(id)}
              onDone={actor.reload}
            />
          </>
        }
      >
        <p class="lead">
          {kernel === undefined
            ? 'No kernel runs'
            : `Its kernel uses ${bytes(kernel.memoryBytes)} of memory and ${duration(kernel.cpuSeconds * 1000)} of processor time`}
          . <a href={here(['actors', 'notebook-session', id])}>Its statechart</a>{' '}
          <a href={here(['runs'], { session: id })}>Its runs</a>{' '}
          <a href={here(['streams', id])}>Its stream</a>
        </p>
      </ViewHead>
      <NotebookVersions id={id} onRestored={saved.reload} />
      {error !== undefined && <Problem error={error} />}
      {saved.error !== undefined && <Problem error={saved.error} retry={saved.reload} />}
      {notebook?.failure != null && (
        <div class="problem" role="alert">
          <strong>{notebook.failure.message}</strong> <code>{notebook.failure.code}</code>
        </div>
      )}
      {notebook === undefined && error === undefined && <Loading />}
      <div class="stack">
        {(notebook?.order ?? []).map((cellId) => {
          const cell = notebook?.cells.get(cellId);
          return cell === undefined ? null : <NotebookCell key={cellId} sessionId={id} cell={cell} />;
        })}
      </div>
    </section>
  );
}

/** A cell of an open notebook: read only. */
function NotebookCell({ sessionId, cell }: { readonly sessionId: string; readonly cell: LiveCell }) {
  const { cellId, name, code, status, isStale, output, printed } = cell;
  return (
    <article class="cell" aria-label={`Cell ${name || cellId}`}>
      <header>
        <code>{name || cellId}</code>
        <Badge state={isStale && status === 'idle' ? 'stale' : status} />
      </header>
      {code !== '' && <pre class="code">{code}</pre>}
      <Console entries={printed} sessionId={sessionId} />
      {output != null && <OutputView output={output} sessionId={sessionId} />}
    </article>
  );
}
