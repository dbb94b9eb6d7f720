/** Whether the page is visible, and the present time. A hidden page requests and follows nothing. */
import { signal } from '@preact/signals';

export const isVisible = signal(document.visibilityState === 'visible');

document.addEventListener('visibilitychange', () => {
  isVisible.value = document.visibilityState === 'visible';
});

/** The time of the server, updated once a second while the page is visible. */
export const now = signal(Date.now());

/** A smaller difference between the clocks may come from the time that an answer took. */
const MIN_DIFFERENCE_MS = 5_000;
/** How far the server's clock is ahead of this machine's clock. */
let aheadMs = 0;

/** Takes the time that the server has just given. */
export function noteServerTime(serverMs: number): void {
  const differenceMs = serverMs - Date.now();
  const before = aheadMs;
  aheadMs = Math.abs(differenceMs) < MIN_DIFFERENCE_MS ? 0 : differenceMs;
  if (Math.abs(aheadMs - before) >= MIN_DIFFERENCE_MS) now.value = Date.now() + aheadMs;
}

setInterval(() => {
  if (isVisible.peek()) now.value = Date.now() + aheadMs;
}, 1000);
