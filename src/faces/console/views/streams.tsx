import { useSignal } from '@preact/signals';
import { cutText } from '#src/base/text/cut-text.ts';
import { pathOf } from '#src/contract/wire/paths.ts';
import { Empty } from '../parts/empty.tsx';
import { SwitchFilter, TextFilter } from '../parts/filter.tsx';
import { Problem } from '../parts/problem.tsx';
import { ViewHead } from '../parts/view-head.tsx';
import { clock, count, shellWord } from '../parts/words.ts';
import { useClient } from '../state/data.ts';
import { go, here, place } from '../state/route.ts';
import { BASE_URL } from '../state/server.ts';
import { useWhileSeen } from '../state/while-seen.ts';
import type { ViewProps } from '../view-props.ts';

/** How many events are kept. */
const MAX_EVENTS = 500;
/**
 * How many characters of an event are kept. An event with an output may have megabytes, of which the view shows only the
 * beginning.
 */
const MAX_EVENT_CHARS = 2_000;

interface Told {
  readonly number: number;
  readonly time: string;
  readonly type: string;
  readonly text: string;
}

/** The events of one session, or of all actors of the workspace, as they happen. */
export function StreamsView({ rest: [id] }: ViewProps) {
  const client = useClient();
  const events = useSignal<readonly Told[]>([]);
  const error = useSignal<unknown>(undefined);
  const { q = '', paused = '' } = place.value.filters;
  const url =
    BASE_URL +
    (id === undefined
      ? pathOf('followActors', {})
      : `${pathOf('followNotebookSession', { sessionId: id })}?observe=true`);
  const isPaused = paused === 'true';
  useWhileSeen(
    async (signal) => {
      if (isPaused) return;
      let number = events.peek().at(-1)?.number ?? 0;
      let fresh: Told[] = [];
      const show = () => {
        events.value = [...events.peek(), ...fresh].slice(-MAX_EVENTS);
        fresh = [];
      };
      const source =
        id === undefined
          ? client.followActors({ signal })
          : client.notebookSessions.follow(id, { signal, observe: true });
      try {
        for await (const { type, time, data } of source) {
          error.value = undefined;
          if (fresh.length === 0) requestAnimationFrame(show);
          fresh.push({ number: ++number, time, type, text: beginningOf(JSON.stringify(data)) });
        }
      } catch (reason) {
        if (!signal.aborted) error.value = reason;
        throw reason;
      }
    },
    [id, isPaused],
  );
  const shown = events.value.filter(({ type, text }) => q === '' || type.includes(q) || text.includes(q));
  return (
    <section class="view fills">
      <ViewHead
        title={id === undefined ? 'What happens' : `Stream of ${id}`}
        aside={<span class="faint">{isPaused ? 'paused' : 'live'}</span>}
        actions={
          <>
            <Copy
              label="Copy as curl"
              text={`curl -N -H "Authorization: Bearer $TOKEN" -H ${shellWord(`Service-Workspace-Id: ${place.value.workspaceId}`)} ${shellWord(url)}`}
            />
            {id !== undefined && (
              <Copy label="Copy as troupe" text={`troupe sessions events ${shellWord(id)}`} />
            )}
          </>
        }
      >
        <p class="lead">
          The last {count(MAX_EVENTS)} events, of large ones the beginning. Looking wakes nothing and keeps
          nothing awake.
        </p>
        <div class="filters">
          <form
            onSubmit={(event) => {
              event.preventDefault();
              const wanted = String(new FormData(event.currentTarget).get('session')).trim();
              go(here(wanted === '' ? ['streams'] : ['streams', wanted]));
            }}
          >
            <input
              name="session"
              type="text"
              // Uncontrolled (no `value`), because otherwise each new event would remove the text
              // that is being typed.
              defaultValue={id ?? ''}
              placeholder="Id of a session"
              aria-label="Id of a session"
            />
          </form>
          <TextFilter name="q" label="A part of an event" />
          <SwitchFilter name="paused" label="Pause" />
          <button
            type="button"
            onClick={() => {
              events.value = [];
            }}
          >
            Clear
          </button>
        </div>
      </ViewHead>
      {error.value !== undefined && <Problem error={error.value} />}
      {shown.length === 0 && error.value === undefined && (
        <Empty title={isPaused ? 'Paused' : 'Waiting for events'}>
          {id === undefined
            ? 'An event appears when an actor moves or refuses.'
            : 'An event appears when something happens in the session.'}
        </Empty>
      )}
      <ol class="events">
        {shown.toReversed().map(({ number, time, type, text }) => (
          <li key={number}>
            <time dateTime={time}>{clock(time)}</time>
            <b>{type}</b>
            <code>{text}</code>
          </li>
        ))}
      </ol>
    </section>
  );
}

function beginningOf(text: string): string {
  if (text.length <= MAX_EVENT_CHARS) return text;
  // The beginning is copied. In V8 a slice refers to the whole text, which would stay in memory.
  const beginning: string = JSON.parse(JSON.stringify(cutText(text, 0, MAX_EVENT_CHARS)));
  return `${beginning} … ${count(text.length)} characters in all`;
}

/** A button that copies a text. */
function Copy({ label, text }: { readonly label: string; readonly text: string }) {
  const copied = useSignal('');
  const copy = async () => {
    // Browsers offer a clipboard only to pages that came over TLS or from this machine.
    if (navigator.clipboard === undefined) copyFromPage(text);
    else await navigator.clipboard.writeText(text);
    copied.value = text;
  };
  return (
    <button type="button" title={text} onClick={copy}>
      {copied.value === text ? 'Copied' : label}
    </button>
  );
}

function copyFromPage(text: string): void {
  const field = document.createElement('textarea');
  field.value = text;
  document.body.append(field);
  field.select();
  document.execCommand('copy');
  field.remove();
}
