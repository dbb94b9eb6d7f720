/** The settings as `troupe config` and the documentation show them. Secrets are never shown. */

import { Secret } from '../caller/secret.ts';
import type { LoadedConfig, Source } from './config.ts';
import type { Setting } from './setting.ts';
import { SETTING_NAMES, SETTINGS, type SettingName } from './settings.ts';

/** One setting and its value, without secrets. */
export interface EffectiveSetting {
  readonly name: SettingName;
  readonly env: string;
  /** `null` when unset; `[secret]` for a secret that is set. */
  readonly value: string | number | boolean | readonly string[] | null;
  readonly unit: string | null;
  readonly source: Source;
  readonly secret: boolean;
}

/** Returns the effective value of every setting, in the order of the table. */
export function effectiveSettings({ config, sources }: LoadedConfig): EffectiveSetting[] {
  return SETTING_NAMES.map((name) => {
    const { env, unit }: Setting<unknown> = SETTINGS[name];
    const value = config[name] ?? null;
    const shown = value instanceof Secret ? String(value) : value;
    return { name, env, value: shown, unit: unit ?? null, source: sources[name], secret: isSecret(name) };
  });
}

/** Returns the table of settings for the documentation, in Markdown. */
export function settingsTable(): string {
  const rows = SETTING_NAMES.map((name) => {
    const setting: Setting<unknown> = SETTINGS[name];
    const meaning = `${setting.description} ${capital(setting.kind.expectation)}.`;
    return row([code(setting.env), code(name), documentedDefault(setting), escapeCell(meaning)]);
  });
  const head = [
    row(['Environment', '`troupe.config.json`', 'Default', 'Meaning']),
    row(['---', '---', '---', '---']),
  ];
  return `${[...head, ...rows].join('\n')}\n`;
}

/**
 * Returns whether the kind wraps its values. The answer comes from the kind itself, so there is no
 * second list that could differ.
 */
function isSecret(name: SettingName): boolean {
  const setting: Setting<unknown> = SETTINGS[name];
  return setting.kind.parse('x'.repeat(32), { cwd: '/', packageRoot: '/' }) instanceof Secret;
}

function documentedDefault({ default: fallback, unit }: Setting<unknown>): string {
  if (fallback === undefined) return '';
  const text = typeof fallback === 'string' ? fallback : fallback.shown;
  return code(unit === undefined ? text : `${text} ${unit}`);
}

function row(cells: readonly string[]): string {
  return `| ${cells.join(' | ')} |`;
}

function code(text: string): string {
  return `\`${text}\``;
}

function capital(text: string): string {
  return text.charAt(0).toUpperCase() + text.slice(1);
}

function escapeCell(text: string): string {
  return text.replaceAll('|', '\\|');
}
