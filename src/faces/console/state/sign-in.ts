/**
 * The user of the console: the person who has signed in with this browser, or the holder of a pasted token. A pasted token stays
 * in the memory of the page or, if the user asks for that, in `sessionStorage`, which ends with the tab. The token is never in a
 * link, a cookie or `localStorage`.
 */
import { signal } from '@preact/signals';
import { ApiError } from '#src/contract/client/api-error.ts';
import { type Client, createClient } from '#src/contract/client/client.ts';
import type { OwnAccount, OwnWorkspace } from '#src/contract/wire/identity.ts';
import { endSignIn } from '../home/account.ts';
import { BASE_URL, request } from './server.ts';

export interface SignIn {
  /** Whether this is the sign-in of the browser, whose secret is in a cookie. Otherwise the user has pasted an access token. */
  readonly isOfBrowser: boolean;
  readonly account: OwnAccount;
  readonly workspaces: readonly OwnWorkspace[];
  clientOf(workspaceId: string): Client;
}

const KEY = 'troupe.token';

/** Undefined until somebody has signed in. */
export const user = signal<SignIn | undefined>(undefined);
/** Further state to forget when the user signs out, because the next user may have fewer rights. */
const forgetters: (() => void)[] = [];

/** Calls `forget` whenever the user signs out. */
export function onSignOut(forget: () => void): void {
  forgetters.push(forget);
}

/** Whether the console is still asking the server if the token of this tab is valid. */
export const isResuming = signal(false);
/** The reason why the last sign-in ended, shown on the page for signing in. */
export const endedBecause = signal<string | undefined>(undefined);

/** Signs in with a token. Rejects with `ApiError` or `ConnectionError`, without any change. */
export async function signIn(token: string, options: { readonly remember: boolean }): Promise<void> {
  await begin(token);
  if (options.remember) sessionStorage.setItem(KEY, token);
}

/** Signs in with a token; without a token, uses the sign-in of the browser. */
async function begin(token: string | undefined): Promise<void> {
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
  endedBecause.value = undefined;
  user.value = { isOfBrowser: token === undefined, account, workspaces: account.workspaces, clientOf };
}

/**
 * Signs in with the token of this tab, or else with the sign-in of the browser. Resolves after success and after failure.
 */
export async function resume(): Promise<void> {
  const token = sessionStorage.getItem(KEY) ?? undefined;
  isResuming.value = true;
  try {
    await begin(token);
  } catch (error) {
    const isUnknown = error instanceof ApiError && error.status === 401;
    if (isUnknown) sessionStorage.removeItem(KEY);
    // That nobody has signed in with this browser yet is not a failure.
    if (!isUnknown || token !== undefined)
      endedBecause.value = error instanceof Error ? error.message : String(error);
  }
  isResuming.value = false;
}

/**
 * Signs out: forgets the pasted token, or ends the sign-in of the browser and leaves the console. Rejects with `ApiError`.
 */
export async function signOut(): Promise<void> {
  if (user.peek()?.isOfBrowser === true) await endSignIn();
  else forget();
}

/** Forgets the user's token and all shown data. */
function forget(because?: string): void {
  sessionStorage.removeItem(KEY);
  endedBecause.value = because;
  user.value = undefined;
  for (const forgetMore of forgetters) forgetMore();
}

/** Forgets the user when the server no longer accepts the token. */
function watchedFetch(token: string | undefined): typeof fetch {
  return async (input, init) => {
    const response = await request(input, init);
    const sent = new Headers(init?.headers).get('authorization');
    const isCurrent = user.peek() !== undefined && sent === (token === undefined ? null : `Bearer ${token}`);
    if (response.status === 401 && isCurrent)
      forget(
        token === undefined
          ? 'You have signed out, or your session has ended.'
          : 'The server no longer accepts this token: it was deleted or has expired.',
      );
    return response;
  };
}
