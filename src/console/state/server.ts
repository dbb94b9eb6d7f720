/** The server: its address, and whether it answers. While it does not, it is asked at intervals, so that the console goes on by itself. */
import { effect, signal } from '@preact/signals';
import { isVisible } from './visible.ts';

/** The address of the server: the console may be below a path of a proxy. */
export const BASE_URL = location.origin + location.pathname.replace(/\/console\/?$/, '');

const ASK_EVERY_MS = 3_000;
/** What a proxy answers in place of a server that is away. */
const PROXY_STATUSES: readonly number[] = [502, 504];

/** Whether the last request got no answer from the server. */
export const isUnreachable = signal(false);
/** How often the server has answered again after it did not. What is shown is loaded again then. */
export const comebacks = signal(0);

/** Sends a request, and notes whether the server answers. */
export async function request(...[input, init]: Parameters<typeof fetch>): Promise<Response> {
  try {
    const response = await fetch(input, init);
    note(!PROXY_STATUSES.includes(response.status));
    return response;
  } catch (error) {
    // A view that goes away aborts its requests, which says nothing about the server.
    if (!(error instanceof DOMException && error.name === 'AbortError')) note(false);
    throw error;
  }
}

function note(hasAnswered: boolean): void {
  if (hasAnswered && isUnreachable.peek()) comebacks.value++;
  isUnreachable.value = !hasAnswered;
}

effect(() => {
  if (!isUnreachable.value || !isVisible.value) return;
  const timer = setInterval(() => request(`${BASE_URL}/healthz`).catch(() => {}), ASK_EVERY_MS);
  return () => clearInterval(timer);
});
