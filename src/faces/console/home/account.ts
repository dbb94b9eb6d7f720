/**
 * The person who has signed in. The browser sends the cookie of the sign-in, which the page cannot read, with every request of
 * the page. When the server no longer knows the sign-in, the page leads to the sign-in page.
 */
import { ApiError } from '#src/contract/client/api-error.ts';
import { type Client, createClient } from '#src/contract/client/client.ts';
import type { SignedOut, SignInOptions } from '#src/contract/wire/operations/sign-in.ts';
import { BASE_URL, request } from '../state/server.ts';

/** Sends a request. When the server does not recognise the person, goes to the sign-in page. */
const send: typeof fetch = async (input, init) => {
  const response = await request(input, init);
  if (response.status === 401) location.replace(signInPath());
  return response;
};

function signInPath(): string {
  const { pathname, search, hash } = location;
  return `${BASE_URL}/sign-in?to=${encodeURIComponent(pathname + search + hash)}`;
}

/** Returns a client for the workspace; without an id, a client for requests without a workspace. */
export function clientOf(workspaceId?: string): Client {
  return createClient({ baseUrl: BASE_URL, workspaceId, fetch: send });
}

/** Exchanges an access token for a sign-in of this browser. Rejects with `ApiError`. */
export async function signInWith(token: string): Promise<void> {
  const response = await request(`${BASE_URL}/sign-in`, {
    method: 'POST',
    headers: { authorization: `Bearer ${token}` },
  });
  if (!response.ok) throw await errorOf(response);
}

/**
 * Ends this sign-in, or all sign-ins of the person in browsers. Then goes to the page for a person who has signed out, or to the
 * identity provider, which ends its own session.
 */
export async function endSignIn({ everywhere = false } = {}): Promise<void> {
  const path = everywhere ? '/sign-out/everywhere' : '/sign-out';
  const response = await request(BASE_URL + path, { method: 'POST' });
  if (!response.ok && response.status !== 401) throw await errorOf(response);
  const { next }: Partial<SignedOut> = response.ok ? await response.json() : {};
  location.replace(next ?? `${BASE_URL}/sign-in`);
}

/** Resolves with the ways to sign in. */
export async function signInOptions(): Promise<SignInOptions> {
  const response = await request(`${BASE_URL}/sign-in/options`);
  if (!response.ok) throw await errorOf(response);
  return response.json();
}

/**
 * Returns the address to open after signing in. The result is an address of this server, also for a link that names another one.
 */
export function destination(): string {
  const home = `${BASE_URL}/`;
  const to = new URLSearchParams(location.search).get('to') ?? home;
  if (!to.startsWith('/') || !URL.canParse(to, home)) return home;
  const url = new URL(to, home);
  return url.origin === location.origin ? url.href : home;
}

/** Returns the path and the query of `destination`. The identity provider leads back to this path. */
export function pathOfDestination(): string {
  const { pathname, search } = new URL(destination());
  return pathname + search;
}

/** The key under which the browser keeps the workspace that was chosen last. */
const WORKSPACE_KEY = 'troupe.workspace';

/** Returns the id of the workspace that was chosen last in this browser. */
export function chosenWorkspace(): string | null {
  return localStorage.getItem(WORKSPACE_KEY);
}

export function chooseWorkspace(id: string): void {
  localStorage.setItem(WORKSPACE_KEY, id);
}

async function errorOf(response: Response): Promise<ApiError> {
  const text = await response.text();
  let body: unknown;
  try {
    body = JSON.parse(text);
  } catch {
    body = undefined;
  }
  return new ApiError(response.status, response.headers, body);
}
