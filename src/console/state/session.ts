/**
 * The user of the console. The token stays in the memory of the page or, if its user asks for it, in `sessionStorage`,
 * which ends with the tab. It is never in a link, a cookie or `localStorage`.
 */
import { signal } from '@preact/signals';
import { ApiError } from '#src/client/api-error.ts';
import { type Client, createClient } from '#src/client/client.ts';
import type { OwnAccount, OwnWorkspace } from '#src/wire/identity.ts';
import { BASE_URL, request } from './server.ts';

export interface Session {
  readonly account: OwnAccount;
  readonly workspaces: readonly OwnWorkspace[];
  clientOf(workspaceId: string): Client;
}

const KEY = 'troupe.token';

/** Undefined until somebody has signed in. */
export const session = signal<Session | undefined>(undefined);
/** Further state to forget when the user signs out, because the next user may have fewer rights. */
const forgetters: (() => void)[] = [];

/** Calls `forget` whenever the user signs out. */
export function onSignOut(forget: () => void): void {
  forgetters.push(forget);
}

/** Whether the server is being asked whether the token of this tab is still good. */
export const isResuming = signal(false);
/** The reason why the last session ended, shown on the page for signing in. */
export const endedBecause = signal<string | undefined>(undefined);

/** Signs in. Rejects with `ApiError` or `ConnectionError`; nothing has changed then. */
export async function signIn(token: string, options: { readonly remember: boolean }): Promise<void> {
  const send = watchedFetch(token);
  const create = (workspaceId?: string) =>
    createClient({ baseUrl: BASE_URL, accessToken: token, workspaceId, fetch: send });
  const account = await create().me();
  const clients = new Map<string, Client>();
  const clientOf = (workspaceId: string) => {
    const client = clients.get(workspaceId) ?? create(workspaceId);
    clients.set(workspaceId, client);
    return client;
  };
  if (options.remember) sessionStorage.setItem(KEY, token);
  endedBecause.value = undefined;
  session.value = { account, workspaces: account.workspaces, clientOf };
}

/** Signs in with the token of this tab, if there is one. Resolves when that has succeeded or failed. */
export async function resume(): Promise<void> {
  const token = sessionStorage.getItem(KEY);
  if (token === null) return;
  isResuming.value = true;
  try {
    await signIn(token, { remember: true });
  } catch (error) {
    if (error instanceof ApiError && error.status === 401) sessionStorage.removeItem(KEY);
    endedBecause.value = error instanceof Error ? error.message : String(error);
  }
  isResuming.value = false;
}

export function signOut(because?: string): void {
  sessionStorage.removeItem(KEY);
  endedBecause.value = because;
  session.value = undefined;
  for (const forget of forgetters) forget();
}

/** Ends the session when the server no longer knows its token. */
function watchedFetch(token: string): typeof fetch {
  return async (input, init) => {
    const response = await request(input, init);
    const isCurrent =
      session.peek() !== undefined && new Headers(init?.headers).get('authorization') === `Bearer ${token}`;
    if (response.status === 401 && isCurrent)
      signOut('The server no longer accepts this token: it was deleted or has expired.');
    return response;
  };
}
