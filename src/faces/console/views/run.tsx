import type { CellResult, OutputPart, Run } from '#src/contract/wire/run.ts';
import { Console } from '../output/console.tsx';
import { OutputView } from '../output/output.tsx';
import { Action } from '../parts/action.tsx';
import { LinkToActor } from '../parts/actor-link.tsx';
import { Badge } from '../parts/badge.tsx';
import { Empty, Loading } from '../parts/empty.tsx';
import { Facts } from '../parts/facts.tsx';
import { Problem } from '../parts/problem.tsx';
import { Age } from '../parts/time.tsx';
import { Took } from '../parts/took.tsx';
import { ViewHead } from '../parts/view-head.tsx';
import { bytes, dateTime, duration, valueText } from '../parts/words.ts';
import { useClient, useData } from '../state/data.ts';
import { useChangesOf } from '../state/one-actor.ts';
import { here } from '../state/route.ts';
import { useTitles } from '../state/titles.ts';

/** One run: its progress or end, and its results. */
export function RunView({ id }: { readonly id: string }) {
  const client = useClient();
  const run = useData((_, signal) => client.runs.get(id, { signal }), [id]);
  useChangesOf('run', id, run.reload);
  const titleOf = useTitles(run.value === undefined ? [] : [run.value.sessionId]);
  const { value } = run;
  if (value === undefined)
    return (
      <section class="view">
        <ViewHead title={id} />
        {run.error === undefined ? <Loading /> : <Problem error={run.error} retry={run.reload} />}
      </section>
    );
  const { status, stale, kind, sessionId, error, output, createdAt, input } = value;
  const title = titleOf(sessionId);
  return (
    <section class="view">
      <ViewHead
        title={id}
        aside={<Badge state={stale === true ? 'stale' : status} />}
        actions={
          status === 'running' && (
            <Action label="Cancel" isDanger run={() => client.runs.cancel(id)} onDone={run.reload} />
          )
        }
      >
        <p class="lead">
          {kind === 'notebook' ? 'Execution' : 'Prompt'} that began <Age since={createdAt} /> ago
          {value.finishedAt === null ? ' and goes on' : ', and took '}
          {value.finishedAt !== null && <Took run={value} />}.{' '}
          <a href={here(['actors', 'run', id])}>Its statechart</a>
        </p>
      </ViewHead>
      {stale === true && (
        <p class="notice">The server died during this run, so nothing will finish it. Cancel it to end it.</p>
      )}
      {error !== null && (
        <div class="problem" role="alert">
          <strong>{error.message}</strong> <code>{error.code}</code>
          {error.cells !== undefined && error.cells.length > 0 && <p>In {error.cells.join(', ')}</p>}
        </div>
      )}
      <div class="columns">
        <div class="card full">
          <Facts
            facts={{
              created: dateTime(createdAt),
              model: output?.model,
              steps: output?.steps,
              tokens: output?.usage && `${output.usage.inputTokens} in, ${output.usage.outputTokens} out`,
              asked: asked(value),
            }}
          />
          <ul class="links">
            <li>
              <LinkToActor kind={`${kind}-session`} id={sessionId} />{' '}
              <a href={here([kind === 'notebook' ? 'sessions' : 'agents', sessionId])}>
                {title === sessionId
                  ? `open the ${kind === 'notebook' ? 'notebook' : 'conversation'}`
                  : title}
              </a>
            </li>
          </ul>
        </div>
        <div class="full stack">
          {output?.parts.map((part, i) => (
            <Part key={i} part={part} runId={id} />
          ))}
          {output !== null && output.parts.length === 0 && (
            <Empty title={output.stored ? 'The run has no output' : 'The output was not kept'} />
          )}
          {output === null && status === 'running' && kind === 'notebook' && (
            <p class="faint">
              The output comes with the end.{' '}
              <a href={here(['sessions', sessionId])}>The notebook shows it live.</a>
            </p>
          )}
        </div>
      </div>
      <details class="card">
        <summary>The request as it was accepted</summary>
        <pre>{JSON.stringify(input, null, 2)}</pre>
      </details>
    </section>
  );
}

function asked({ kind, input }: Run): string {
  if (kind === 'agent') return input.prompt;
  return input.type === 'all' ? 'all cells' : input.cells.map(({ cellId }) => cellId).join(', ');
}

function Part({ part, runId }: { readonly part: OutputPart; readonly runId: string }) {
  switch (part.type) {
    case 'cell-result':
      return <CellResultCard result={part} runId={runId} />;
    case 'assistant-message':
      return <pre class="cell message">{part.text}</pre>;
    case 'final-answer':
      return <pre class="cell message">{part.markdown}</pre>;
    case 'tool-call':
      return (
        <details class="cell">
          <summary>
            <code>{part.name}</code> <Badge state={part.status} />
          </summary>
          <pre>{valueText(part.input)}</pre>
          <pre>{part.output}</pre>
        </details>
      );
    case 'warning':
      return (
        <p class="cell warn">
          {part.message} <code>{part.code}</code>
        </p>
      );
    case 'asset':
      return (
        <p class="cell faint">
          Asset <code>{part.assetId}</code>: {part.mimetype}, {bytes(part.bytes)}
        </p>
      );
  }
}

/** The printed text and outputs of a cell in a run, and its status. */
function CellResultCard({ result, runId }: { readonly result: CellResult; readonly runId: string }) {
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
        <OutputView key={i} output={output} runId={runId} />
      ))}
    </article>
  );
}
