import { useSignal } from '@preact/signals';
import { useEffect } from 'preact/hooks';
import { ApiError } from '#src/contract/client/api-error.ts';
import type { Client } from '#src/contract/client/client.ts';
import type { OwnWorkspace } from '#src/contract/wire/identity.ts';
import { Empty, Loading } from '../parts/empty.tsx';
import { Problem } from '../parts/problem.tsx';
import { Mark } from '../shell/mark.tsx';
import { BASE_URL } from '../state/server.ts';
import { chosenWorkspace, clientOf } from './account.ts';
import { whyClosed } from './closed-session.ts';
import { openNotebook } from './open-notebook.ts';

/** A notebook that the person may read. */
interface Found {
  readonly client: Client;
  readonly title: string;
  readonly workspace: OwnWorkspace;
  /** Why the last session of the notebook has ended; empty when it had no session. */
  readonly whyClosed?: string;
}

/**
 * The page at the address of a notebook, for a person who has no access to the notebook's page in this browser yet. An open
 * session is shown at once, because that starts nothing. A session is opened only by a click: code of the notebook may read
 * everything that this person may read, so a link from somebody else must not start that code.
 */
export function NotebookEntry({ notebookId }: { readonly notebookId: string }) {
  const found = useSignal<Found | 'nothing' | undefined>(undefined);
  const error = useSignal<unknown>(undefined);
  const isBusy = useSignal(false);
  useEffect(() => {
    enter(notebookId).then(
      (value) => {
        if (value !== 'left') found.value = value;
      },
      (reason: unknown) => {
        error.value = reason;
      },
    );
  }, []);
  const open = async ({ client }: Found) => {
    isBusy.value = true;
    error.value = undefined;
    try {
      await openNotebook(client, notebookId);
    } catch (reason) {
      error.value = reason;
      isBusy.value = false;
    }
  };
  const notebook = found.value;
  if (notebook === undefined && error.value === undefined) return <Loading />;
  return (
    <main class="login">
      <section aria-label="Notebook">
        <h1>
          <Mark /> Troupe
        </h1>
        {notebook === 'nothing' && (
          <Empty title="There is no such notebook in your workspaces">
            The notebook was deleted, or you are not a member of its workspace. Ask the person who sent you
            the address.
          </Empty>
        )}
        {notebook !== undefined && notebook !== 'nothing' && (
          <>
            <p>
              <strong>{notebook.title}</strong>, in the workspace {notebook.workspace.name}
            </p>
            <p>
              It has no open session. {notebook.whyClosed} Opening it starts a kernel with your rights: its
              code, and everybody who may change it, can use the data that you may use.
            </p>
            <button type="button" class="primary" disabled={isBusy.value} onClick={() => void open(notebook)}>
              Open
            </button>
          </>
        )}
        {error.value !== undefined && <Problem error={error.value} />}
        <p>
          <a href={`${BASE_URL}/`}>All notebooks</a>
        </p>
      </section>
    </main>
  );
}

/**
 * Goes to the page of a notebook that has an open session. Resolves with the notebook if it has no open session.
 */
async function enter(notebookId: string): Promise<Found | 'nothing' | 'left'> {
  const found = await find(notebookId);
  if (found === undefined) return 'nothing';
  document.title = found.title;
  try {
    const { url } = await found.client.notebookSessions.page(notebookId);
    keepFromLoop(notebookId);
    location.replace(BASE_URL + url);
    return 'left';
  } catch (error) {
    const isClosed =
      error instanceof ApiError && (error.code === 'not_found' || error.code === 'session_closed');
    if (!isClosed) throw error;
    const last = await found.client.notebookSessions.get(notebookId).catch(() => undefined); // the notebook had no session yet
    return last === undefined ? found : { ...found, whyClosed: whyClosed(last) };
  }
}

/**
 * Resolves with the notebook, which is searched in the workspace that was chosen last and then in the others; undefined when the
 * person may not read it anywhere.
 */
async function find(notebookId: string): Promise<Found | undefined> {
  const last = chosenWorkspace();
  let after: string | undefined;
  do {
    const account = await clientOf().me({ limit: 100, after });
    const workspaces = account.workspaces.toSorted((a, b) => Number(b.id === last) - Number(a.id === last));
    for (const workspace of workspaces) {
      const client = clientOf(workspace.id);
      try {
        const { title } = await client.notebooks.get(notebookId);
        return { client, workspace, title: title ?? 'Untitled' };
      } catch (error) {
        if (!(error instanceof ApiError && error.status === 404)) throw error;
      }
    }
    after = account.nextCursor ?? undefined;
  } while (after !== undefined);
  return undefined;
}

const LOOP_MS = 10_000;

/**
 * Throws when this page has just led to the notebook and is shown again: the browser did not keep the cookie.
 */
function keepFromLoop(notebookId: string): void {
  const key = `troupe.entered.${notebookId}`;
  const last = Number(sessionStorage.getItem(key));
  if (Date.now() - last < LOOP_MS) {
    sessionStorage.removeItem(key);
    throw new Error(
      'The browser did not keep the cookie of the page. Allow cookies of this server, then load the page again.',
    );
  }
  sessionStorage.setItem(key, String(Date.now()));
}
