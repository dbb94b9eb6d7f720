import { useSignal, useSignalEffect } from '@preact/signals';
import { useEffect, useRef } from 'preact/hooks';
import type { NotebookPresence, NotebookPlace as Place, PresentPerson } from '#src/contract/wire/presence.ts';
import { Badge } from '../parts/badge.tsx';
import { Loading } from '../parts/empty.tsx';
import { Mark } from '../shell/mark.tsx';
import { BASE_URL } from '../state/server.ts';
import { isVisible } from '../state/visible.ts';
import { lazy } from './lazy.tsx';
import { NotebookEntry } from './notebook-entry.tsx';
import { NotebookPanel } from './notebook-panel.tsx';
import { takeTabPlace } from './tab-places.ts';

const NotebookJobs = lazy(async () => (await import('./jobs/notebook-jobs.tsx')).NotebookJobs);

/** How many people are shown by their initials; the panel shows all. */
const SHOWN_PEOPLE = 5;

/**
 * The page at the address of a notebook: marimo's page in a frame, and around the frame the people in the notebook and its agent.
 * The frame has no origin, so scripts in it reach nothing of this page.
 */
export function NotebookPlaceView({ notebookId }: { readonly notebookId: string }) {
  const { place, presence, isRefused, isAway, retry } = usePresence();
  const isOpen = useSignal(false);
  const isScheduling = useSignal(false);
  const hasPlace = useSignal(false);
  const isFound = place !== undefined;
  useEffect(() => {
    if (!isFound) return;
    takeTabPlace().then(
      (isGiven) => {
        if (isGiven) hasPlace.value = true;
        else location.replace(frameUrl() + location.hash);
      },
      () => location.replace(frameUrl() + location.hash), // the browser refuses locks
    );
  }, [isFound]);
  const frame = useRef<HTMLIFrameElement>(null);
  const connection = useConnection(frame);
  const title = presence?.title ?? 'Untitled';
  useEffect(() => {
    if (presence !== undefined) document.title = title;
  }, [title, presence === undefined]);
  if (isRefused) return <NotebookEntry notebookId={notebookId} />;
  if (place === undefined || presence === undefined || !hasPlace.value) return <Loading />;
  // The frame gets the focus, so that keys reach the notebook without a click, as in marimo. A page without an origin may not
  // take the focus by itself.
  const takeFocus = () => {
    if (document.activeElement === document.body) frame.current?.focus();
  };
  const showCell = (cellId: string) => {
    // marimo gives the element of a cell this id. Only the part of the address after # changes, so nothing is loaded.
    frame.current?.contentWindow?.location.replace(`${frameUrl()}#cell-${encodeURIComponent(cellId)}`);
    frame.current?.focus();
  };
  return (
    <div class="notebook-place">
      <header>
        <a href={`${BASE_URL}/`} aria-label="All notebooks" title="All notebooks">
          <Mark />
        </a>
        <h1>{title}</h1>
        {isAway || connection.isAway ? (
          <span class="away" role="status">
            The server does not answer{connection.isUnsaved && ' – unsaved'}
            <button
              type="button"
              onClick={() => {
                retry();
                frame.current?.contentWindow?.postMessage({ type: 'troupe-retry' }, '*');
              }}
            >
              Try again
            </button>
          </span>
        ) : (
          <Badge state={presence.status} />
        )}
        {presence.kernelEnd !== null && (
          <span class="kernel-end" role="status" title={presence.kernelEnd}>
            {presence.kernelEnd} Run the cells again.
          </span>
        )}
        <People {...presence} userId={place.userId} />
        <button
          type="button"
          aria-haspopup="dialog"
          onClick={() => {
            isScheduling.value = true;
          }}
        >
          Schedule
        </button>
        <button
          type="button"
          aria-expanded={isOpen.value}
          onClick={() => {
            isOpen.value = !isOpen.value;
          }}
        >
          {place.access === 'edit' ? 'Agent' : 'People'}
        </button>
      </header>
      <div class="sides">
        <iframe
          ref={frame}
          title="Notebook"
          src={frameUrl() + location.hash}
          allow="clipboard-write *; fullscreen *"
          onLoad={takeFocus}
        />
        {isOpen.value && (
          <NotebookPanel
            notebookId={notebookId}
            place={place}
            presence={presence}
            showCell={showCell}
            close={() => {
              isOpen.value = false;
            }}
          />
        )}
      </div>
      {isScheduling.value && (
        <NotebookJobs
          workspaceId={place.workspaceId}
          notebookId={notebookId}
          title={title}
          closed={() => {
            isScheduling.value = false;
          }}
        />
      )}
    </div>
  );
}

/** Returns the address of marimo's page. Parameters of the query are for the notebook. */
function frameUrl(): string {
  return new URL('page/', location.href).href + location.search;
}

function People({ people, morePeople, agent, userId }: NotebookPresence & { readonly userId: string }) {
  const others = people.filter((person) => person.userId !== userId);
  const hidden = Math.max(0, others.length - SHOWN_PEOPLE) + morePeople;
  return (
    <ul class="people" aria-label="In this notebook">
      {others.slice(0, SHOWN_PEOPLE).map((person) => (
        <Avatar key={person.userId} {...person} />
      ))}
      {hidden > 0 && <li class="more">+{hidden}</li>}
      {agent !== null && (
        <li class={`agent ${agent.status}`} title={`Agent of ${agent.ownerName}: ${agent.status}`}>
          <span aria-hidden="true">✦</span>
          <span class="sr">
            Agent of {agent.ownerName}, {agent.status}
          </span>
        </li>
      )}
    </ul>
  );
}

function Avatar({ name, access }: PresentPerson) {
  const initials = name
    .split(/[\s._@-]+/)
    .filter(Boolean)
    .slice(0, 2)
    .map((word) => [...word][0]?.toUpperCase())
    .join('');
  return (
    <li title={access === 'edit' ? name : `${name}, looks on`}>
      <span aria-hidden="true">{initials}</span>
      <span class="sr">{name}</span>
    </li>
  );
}

interface PageConnection {
  readonly isAway: boolean;
  readonly isUnsaved: boolean;
}

/**
 * The connection of marimo's page in the frame, as that page reports it (src/notebook/pages/page-connection.ts). Any script in
 * the frame may send the report, so it changes only the text of the bar. After a restart of the kernel, marimo's page asks to be
 * loaded again (page-restarts.ts).
 */
function useConnection(frame: { readonly current: HTMLIFrameElement | null }): PageConnection {
  const connection = useSignal<PageConnection>({ isAway: false, isUnsaved: false });
  useEffect(() => {
    const take = ({ source, data }: MessageEvent) => {
      if (source === null || source !== frame.current?.contentWindow) return;
      // The address has no fragment, because a browser loads nothing when only the fragment differs.
      if (data?.type === 'troupe-reload' && frame.current !== null) frame.current.src = frameUrl();
      if (data?.type !== 'troupe-connection') return;
      connection.value = { isAway: data.isAway === true, isUnsaved: data.isUnsaved === true };
    };
    addEventListener('message', take);
    return () => removeEventListener('message', take);
  }, []);
  return connection.value;
}

const RETRY_MS = 3000;

/** How long the server may take to answer before the bar says that it does not answer. */
const MAX_ANSWER_MS = 3000;

/** Asks for the presence. Resolves with `given`, with `refused`, or with `none` when the server does not answer or cannot. */
async function askForPresence(): Promise<'given' | 'refused' | 'none'> {
  const request = new AbortController();
  const timer = setTimeout(() => request.abort(), MAX_ANSWER_MS);
  try {
    const { status } = await fetch('presence', { signal: request.signal });
    if (status === 200) return 'given';
    return status >= 500 || status === 429 ? 'none' : 'refused';
  } catch {
    return 'none';
  } finally {
    clearTimeout(timer);
    request.abort();
  }
}

/** Follows the presence while the page is visible, because a browser has few connections to one server. */
function usePresence() {
  const place = useSignal<Place | undefined>(undefined);
  const presence = useSignal<NotebookPresence | undefined>(undefined);
  const isRefused = useSignal(false);
  const isAway = useSignal(false);
  const attempts = useSignal(0);
  useSignalEffect(() => {
    void attempts.value; // a new attempt makes a new connection
    if (!isVisible.value) return;
    let timer: ReturnType<typeof setTimeout> | undefined;
    let isOver = false;
    const source = new EventSource('presence');
    source.onopen = () => {
      isAway.value = false;
    };
    source.onmessage = ({ data }) => {
      const message: Place | NotebookPresence = JSON.parse(data);
      if ('people' in message) presence.value = message;
      else {
        place.value ??= message;
        isRefused.value = false;
      }
    };
    // The browser itself makes a lost connection again, unless a proxy answers in place of the server. A refusal is final: the
    // cookie is missing or has expired, or the session is closed. Only then may the frame be removed, because it may have unsaved
    // text. The stream also ends when the kernel is restarted, so its end alone does not mean that the server is away.
    source.onerror = async () => {
      const answer = await askForPresence();
      if (isOver || source.readyState === EventSource.OPEN) return;
      isAway.value = answer === 'none';
      if (source.readyState !== EventSource.CLOSED) return;
      if (answer === 'refused') isRefused.value = true;
      else timer = setTimeout(() => attempts.value++, RETRY_MS);
    };
    return () => {
      isOver = true;
      clearTimeout(timer);
      source.close();
    };
  });
  const retry = () => {
    attempts.value++;
  };
  const [isLost, shown] = [isAway.value, presence.value];
  return { place: place.value, presence: shown, isRefused: isRefused.value, isAway: isLost, retry };
}
