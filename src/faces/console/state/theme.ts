/** The theme: light, dark, or the theme of the system. The browser remembers the choice, which is not secret. */
import { effect, signal } from '@preact/signals';

const THEMES = ['system', 'light', 'dark'] as const;
type Theme = (typeof THEMES)[number];
const KEY = 'troupe.theme';

const stored = localStorage.getItem(KEY);
export const theme = signal<Theme>(THEMES.find((one) => one === stored) ?? 'system');

export function nextTheme(): void {
  theme.value = THEMES[(THEMES.indexOf(theme.value) + 1) % THEMES.length] ?? 'system';
}

effect(() => {
  document.documentElement.style.colorScheme = theme.value === 'system' ? '' : theme.value;
  localStorage.setItem(KEY, theme.value);
});
