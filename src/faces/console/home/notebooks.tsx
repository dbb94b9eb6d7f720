import { useComputed, useSignal } from '@preact/signals';
import { useEffect, useRef } from 'preact/hooks';
import type { Client } from '#src/contract/client/client.ts';
import type { OwnAccount, OwnWorkspace } from '#src/contract/wire/identity.ts';
import type { NotebookSessionSummary } from '#src/contract/wire/lists.ts';
import { Action } from '../parts/action.tsx';
import { Badge } from '../parts/badge.tsx';
import { Empty, Loading } from '../parts/empty.tsx';
import { Problem } from '../parts/problem.tsx';
import { Age } from '../parts/time.tsx';
import { Mark } from '../shell/mark.tsx';
import { go, linkTo, place } from '../state/route.ts';
import { BASE_URL, isUnreachable } from '../state/server.ts';
import { isVisible } from '../state/visible.ts';
import { chooseWorkspace, chosenWorkspace, clientOf, endSignIn } from './account.ts';
import { ACCEPTED, importFile } from './import-files.ts';
import { lazy } from './lazy.tsx';
import { NotebookActions } from './notebook-actions.tsx';
import { openNotebook } from './open-notebook.ts';

const PAGE_ITEMS = 30;
/** The most pages that one search requests while it finds too little. */
const MAX_PAGES = 5;
const RECENT_ITEMS = 6;
const SEARCH_AFTER_MS = 200;
const RUNNING_EVERY_MS = 5_000;

const JobsView = lazy(async () => (await import('./jobs/jobs-page.tsx')).JobsView);

const NotebookJobs = lazy(async () => (await import('./jobs/notebook-jobs.tsx')).NotebookJobs);

/** The page of a signed-in person: the notebooks of a workspace, or its jobs, which have links of their own. */
export function NotebooksPage() {
  const account = useSignal<OwnAccount | undefined>(undefined);
  const error = useSignal<unknown>(undefined);
  const chosen = useSignal(chosenWorkspace());
  useEffect(() => {
    clientOf()
      .me({ limit: 100 })
      .then(
        (value) => {
          account.value = value;
        },
        (reason: unknown) => {
          error.value = reason;
        },
      );
  }, []);
  if (account.value === undefined) {
    return error.value === undefined ? <Loading /> : <Problem error={error.value} />;
  }
  const { user, workspaces } = account.value;
  const { workspaceId, view, rest } = place.value;
  const isOnJobs = view === 'jobs';
  const workspace = isOnJobs
    ? workspaces.find(({ id }) => id === workspaceId)
    : (workspaces.find(({ id }) => id === chosen.value) ?? workspaces[0]);
  const choose = (id: string) => {
    chooseWorkspace(id);
    chosen.value = id;
    if (isOnJobs) go(linkTo(id, ['jobs']));
  };
  return (
    <div class="home">
      <header>
        <a class="brand" href={`${BASE_URL}/`}>
          <Mark /> Troupe
        </a>
        {workspaces.length > 1 && (
          <select
            aria-label="Workspace"
            value={workspace?.id}
            onChange={(event) => choose(event.currentTarget.value)}
          >
            {workspaces.map(({ id, name }) => (
              <option key={id} value={id}>
                {name}
              </option>
            ))}
          </select>
        )}
        <nav aria-label="Other pages">
          <a href={`${BASE_URL}/console`}>Console</a>
          <a href={`${BASE_URL}/docs`}>API</a>
          <a href={`${BASE_URL}/about`}>About</a>
        </nav>
        <span class="user" title={user.id}>
          {user.id}
        </span>
        <button
          type="button"
          class="quiet"
          onClick={() => {
            endSignIn().catch((reason: unknown) => {
              error.value = reason;
            });
          }}
        >
          Sign out
        </button>
        <Action
          label="Sign out everywhere"
          confirm="All browsers in which you have signed in are signed out. Access tokens stay."
          run={() => endSignIn({ everywhere: true })}
        />
      </header>
      {isUnreachable.value && (
        <p class="notice" role="status">
          The server does not answer. This page continues by itself when the server is back.
        </p>
      )}
      {error.value !== undefined && <Problem error={error.value} />}
      {workspace !== undefined && (
        <nav class="tabs" aria-label="Work">
          <a href="#/" aria-current={isOnJobs ? undefined : 'page'}>
            Notebooks
          </a>
          <a href={linkTo(workspace.id, ['jobs'])} aria-current={isOnJobs ? 'page' : undefined}>
            Jobs
          </a>
        </nav>
      )}
      {workspaces.length === 0 ? (
        <Empty title="You are a member of no workspace">Ask an owner of a workspace to add you.</Empty>
      ) : workspace === undefined ? (
        <Empty title="You are not a member of this workspace">
          <a href="#/">Your notebooks</a>
        </Empty>
      ) : isOnJobs ? (
        <JobsView key={workspace.id} workspace={workspace} userId={user.id} jobId={rest[0]} />
      ) : (
        <NotebookList key={workspace.id} workspace={workspace} />
      )}
    </div>
  );
}

interface Item {
  readonly id: string;
  readonly title: string | null;
  readonly createdBy?: string;
  readonly updatedAt: string;
}

function NotebookList({ workspace }: { readonly workspace: OwnWorkspace }) {
  useEffect(() => {
    document.title = 'Troupe';
  }, []);
  const client = useRef(clientOf(workspace.id)).current;
  const search = useSignal('');
  const items = useSignal<readonly Item[] | undefined>(undefined);
  const next = useSignal<string | null>(null);
  const sessions = useSignal<readonly NotebookSessionSummary[]>([]);
  const error = useSignal<unknown>(undefined);
  /** The files that were not imported. */
  const refused = useSignal<readonly { readonly name: string; readonly reason: unknown }[]>([]);
  const isBusy = useSignal(false);
  const isDragged = useSignal(false);
  /** The notebook whose jobs are shown. */
  const scheduled = useSignal<Item | undefined>(undefined);
  const picker = useRef<HTMLInputElement>(null);
  const mayEdit = workspace.role !== 'viewer';

  /** Runs an action that leads to another page, or shows its error. */
  const act = async (action: () => Promise<void>) => {
    if (isBusy.value) return;
    isBusy.value = true;
    error.value = undefined;
    refused.value = [];
    try {
      await action();
    } catch (reason) {
      error.value = reason;
    }
    isBusy.value = false;
  };
  const open = (id: string) => act(() => openNotebook(client, id));
  const create = () =>
    act(async () => {
      const { id } = await client.notebooks.create({});
      await openNotebook(client, id);
    });
  const bring = (files: readonly File[]) =>
    act(async () => {
      let last: string | undefined;
      for (const file of files)
        try {
          last = await importFile(client, file);
        } catch (reason) {
          refused.value = [...refused.value, { name: file.name, reason }]; // the other files are imported all the same
        }
      if (files.length === 1 && last !== undefined) await openNotebook(client, last);
      else await load(undefined);
    });
  const load = async (after: string | undefined, signal?: AbortSignal) => {
    const found = await pagesOf(client, search.value, after, signal);
    items.value = after === undefined ? found.items : [...(items.value ?? []), ...found.items];
    next.value = found.nextCursor;
  };
  const text = search.value;
  useEffect(() => {
    const gone = new AbortController();
    const timer = setTimeout(
      () => {
        load(undefined, gone.signal).catch((reason: unknown) => {
          if (!gone.signal.aborted) error.value = reason;
        });
      },
      text === '' ? 0 : SEARCH_AFTER_MS,
    );
    return () => {
      clearTimeout(timer);
      gone.abort();
    };
  }, [text]);
  const isSeen = isVisible.value;
  useEffect(() => {
    if (!isSeen) return;
    const gone = new AbortController();
    const look = async () => {
      const { signal } = gone;
      try {
        sessions.value = await latestSessions(client, signal);
      } catch {
        // The next attempt may succeed. If the sign-in has ended, the page leads to the sign-in page by itself.
      }
    };
    void look();
    const timer = setInterval(look, RUNNING_EVERY_MS);
    return () => {
      clearInterval(timer);
      gone.abort();
    };
  }, [isSeen]);
  const running = useComputed(() => sessions.value.filter(({ status }) => status !== 'closed'));
  const recent = useComputed(() =>
    sessions.value.filter(({ status }) => status === 'closed').slice(0, RECENT_ITEMS),
  );
  return (
    <main
      class={isDragged.value ? 'dragged' : ''}
      onDragOver={(event) => {
        if (!mayEdit || !event.dataTransfer?.types.includes('Files')) return;
        event.preventDefault();
        isDragged.value = true;
      }}
      onDragLeave={(event) => {
        if (event.currentTarget === event.target) isDragged.value = false;
      }}
      onDrop={(event) => {
        isDragged.value = false;
        const files = [...(event.dataTransfer?.files ?? [])];
        if (!mayEdit || files.length === 0) return;
        event.preventDefault();
        void bring(files);
      }}
    >
      <div class="tools">
        <input
          type="search"
          aria-label="Search titles"
          placeholder="Search titles"
          maxLength={200}
          value={text}
          onInput={(event) => {
            search.value = event.currentTarget.value;
          }}
        />
        {mayEdit && (
          <>
            <button type="button" class="primary" disabled={isBusy.value} onClick={() => void create()}>
              New notebook
            </button>
            <button type="button" disabled={isBusy.value} onClick={() => picker.current?.click()}>
              Import
            </button>
            <input
              ref={picker}
              type="file"
              hidden
              multiple
              accept={ACCEPTED}
              aria-label="Files to import"
              onChange={(event) => {
                const files = [...(event.currentTarget.files ?? [])];
                event.currentTarget.value = '';
                if (files.length > 0) void bring(files);
              }}
            />
          </>
        )}
      </div>
      {error.value !== undefined && <Problem error={error.value} />}
      {refused.value.map(({ name, reason }) => (
        <Problem key={name} title={`${name} was not imported`} error={reason} />
      ))}
      {text === '' && running.value.length > 0 && (
        <section aria-labelledby="running">
          <h2 id="running">Running</h2>
          <ul class="cards">
            {running.value.map((session) => (
              <li key={session.sessionId}>
                <button type="button" disabled={isBusy.value} onClick={() => void open(session.notebookId)}>
                  <span class="title">{titleOf(session)}</span>
                  <Badge state={session.status} />
                </button>
              </li>
            ))}
          </ul>
        </section>
      )}
      {text === '' && recent.value.length > 0 && (
        <section aria-labelledby="recent">
          <h2 id="recent">Recently opened</h2>
          <ul class="cards">
            {recent.value.map((session) => (
              <li key={session.sessionId}>
                <button type="button" disabled={isBusy.value} onClick={() => void open(session.notebookId)}>
                  <span class="title">{titleOf(session)}</span>
                  <small>
                    <Age since={session.updatedAt} /> ago
                  </small>
                </button>
              </li>
            ))}
          </ul>
        </section>
      )}
      <section aria-labelledby="all">
        <h2 id="all">{text === '' ? 'Notebooks' : 'Found'}</h2>
        {items.value === undefined ? (
          error.value === undefined && <Loading />
        ) : items.value.length === 0 ? (
          <Empty title={text === '' ? 'No notebooks yet' : 'No title contains this text'}>
            {mayEdit && text === ''
              ? 'Create a notebook, or drop a file on this page: .ipynb, .py of marimo, or .md.'
              : undefined}
          </Empty>
        ) : (
          <ul class="rows">
            {items.value.map((item) => (
              <li key={item.id}>
                <button type="button" disabled={isBusy.value} onClick={() => void open(item.id)}>
                  <span class="title">{titleOf(item)}</span>
                  <small>
                    {item.createdBy !== undefined && <span class="owner">{item.createdBy}</span>}
                    <Age since={item.updatedAt} /> ago
                  </small>
                </button>
                {mayEdit && (
                  <NotebookActions
                    client={client}
                    item={item}
                    changed={() => load(undefined)}
                    schedule={() => {
                      scheduled.value = item;
                    }}
                  />
                )}
              </li>
            ))}
          </ul>
        )}
        {next.value !== null && (
          <button
            type="button"
            class="more"
            onClick={() =>
              load(next.value ?? undefined).catch((reason: unknown) => {
                error.value = reason;
              })
            }
          >
            Show more
          </button>
        )}
      </section>
      {mayEdit && (items.value?.length !== 0 || text !== '') && (
        <p class="drop faint">Drop .ipynb, .py or .md files anywhere on this page to import them.</p>
      )}
      {scheduled.value !== undefined && (
        <NotebookJobs
          workspaceId={workspace.id}
          notebookId={scheduled.value.id}
          title={titleOf(scheduled.value)}
          closed={() => {
            scheduled.value = undefined;
          }}
        />
      )}
    </main>
  );
}

function titleOf({ title }: { readonly title: string | null }): string {
  return title ?? 'Untitled';
}

/**
 * Resolves with notebooks whose titles contain the text, newest first. A search reads up to `MAX_PAGES` pages until it has found
 * enough.
 */
async function pagesOf(client: Client, text: string, after: string | undefined, signal?: AbortSignal) {
  const title = text.trim() === '' ? undefined : text.trim();
  const items: Item[] = [];
  let cursor = after;
  for (let page = 0; page < MAX_PAGES; page++) {
    const found = await client.notebooks.list({
      order: 'desc',
      limit: PAGE_ITEMS,
      title,
      after: cursor,
      signal,
    });
    items.push(...found.items);
    if (found.nextCursor === null || items.length >= PAGE_ITEMS)
      return { items, nextCursor: found.nextCursor };
    cursor = found.nextCursor;
  }
  return { items, nextCursor: cursor ?? null };
}

/** Resolves with the open sessions and the sessions that were opened last, without repetition. */
async function latestSessions(client: Client, signal: AbortSignal): Promise<NotebookSessionSummary[]> {
  const limit = PAGE_ITEMS;
  const [open, latest] = await Promise.all([
    client.notebookSessions.list({ order: 'desc', status: 'open', limit, signal }),
    client.notebookSessions.list({ order: 'desc', limit, signal }),
  ]);
  return [...open.items, ...latest.items.filter(({ status }) => status === 'closed')];
}
