/** Whether somebody can see the page. Nothing is requested or followed while nobody can. */
import { signal } from '@preact/signals';

export const isVisible = signal(document.visibilityState === 'visible');

document.addEventListener('visibilitychange', () => {
  isVisible.value = document.visibilityState === 'visible';
});

/** The time, once a second while somebody looks. */
export const now = signal(Date.now());

setInterval(() => {
  if (isVisible.peek()) now.value = Date.now();
}, 1000);
