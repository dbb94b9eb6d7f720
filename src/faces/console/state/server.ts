/**
 * The server: its address, its clock, and whether it answers. While it does not answer, the console
 * keeps asking.
 */
import { effect, signal } from '@preact/signals';
import { isVisible, noteServerTime } from './visible.ts';

/** The address of the server, which may have a path, because a proxy can serve it below one. */
export const BASE_URL =
  location.origin + location.pathname.replace(/\/(console\/?|sign-in|n\/[^/]+\/)?$/, '');

const ASK_EVERY_MS = 3_000;
/** The statuses that a proxy returns while the server is away. */
const PROXY_STATUSES: readonly number[] = [502, 504];

/** Whether a request got no answer, and the check of the server has not succeeded since. */
export const isUnreachable = signal(false);
/** How often the server has come back. Each time, the shown data are loaded again. */
export const comebacks = signal(0);

/** Sends a request, and records whether the server answered and the time of the server's clock. */
export async function request(...[input, init]: Parameters<typeof fetch>): Promise<Response> {
  try {
    const response = await fetch(input, init);
    if (PROXY_STATUSES.includes(response.status)) isUnreachable.value = true;
    const date = Date.parse(response.headers.get('date') ?? '');
    // A cached answer has the time of its making, not the present time.
    if (response.headers.get('cache-control') === 'no-store' && !Number.isNaN(date)) noteServerTime(date);
    return response;
  } catch (error) {
    // A view that is closed aborts its requests, which says nothing about the server.
    if (!(error instanceof DOMException && error.name === 'AbortError')) isUnreachable.value = true;
    throw error;
  }
}

// Only this request ends the state `isUnreachable`. If every answer ended the state, one request that always fails would make the
// console load all data again and again.
effect(() => {
  if (!isUnreachable.value || !isVisible.value) return;
  const timer = setInterval(async () => {
    const response = await fetch(`${BASE_URL}/healthz`, { method: 'HEAD' }).catch(() => undefined);
    if (response?.ok !== true || !isUnreachable.peek()) return;
    isUnreachable.value = false;
    comebacks.value++;
  }, ASK_EVERY_MS);
  return () => clearInterval(timer);
});
