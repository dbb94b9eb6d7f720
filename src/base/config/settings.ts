/**
 * The table of all settings. The parser, `troupe config` and the documentation are made from it. A key of the table is
 * also the member's name in `troupe.config.json`.
 */
import { AGENT_SETTINGS } from './agent-settings.ts';
import { KERNEL_SETTINGS } from './kernel-settings.ts';
import { NODE_SETTINGS } from './node-settings.ts';
import { PACKAGE_SETTINGS } from './package-settings.ts';
import { RETENTION_SETTINGS } from './retention-settings.ts';
import { SERVER_SETTINGS } from './server-settings.ts';
import { SESSION_SETTINGS } from './session-settings.ts';
import { SIGN_IN_SETTINGS } from './sign-in-settings.ts';

/** Every setting, in the order of the documentation. */
export const SETTINGS = {
  ...SERVER_SETTINGS,
  ...SIGN_IN_SETTINGS,
  ...RETENTION_SETTINGS,
  ...SESSION_SETTINGS,
  ...KERNEL_SETTINGS,
  ...NODE_SETTINGS,
  ...PACKAGE_SETTINGS,
  ...AGENT_SETTINGS,
} as const;

/** The name of a setting in `troupe.config.json` and in `Config`. */
export type SettingName = keyof typeof SETTINGS;

/** All names, in the order of the table. */
export const SETTING_NAMES: readonly SettingName[] = Object.keys(SETTINGS).filter(isSettingName);

/** Returns whether the text is the name of a setting. */
export function isSettingName(name: string): name is SettingName {
  return Object.hasOwn(SETTINGS, name);
}
