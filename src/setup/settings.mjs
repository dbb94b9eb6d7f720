// The settings of the server that set-up has to know. The server reads and checks all of them by itself (src/config.ts).
import { join } from 'node:path';
import { readIfPresent } from './stamps.mjs';

/**
 * Returns the value of a setting in the environment, where it is called `variable`, or in the settings file of the folder `cwd`, where
 * it is called `name`. Returns undefined when neither the environment nor the file has the setting.
 */
export function settingOf(variable, name, cwd = process.cwd()) {
  if (process.env[variable]) return process.env[variable];
  try {
    return JSON.parse(readIfPresent(join(cwd, 'troupe.config.json')) ?? '{}')[name];
  } catch {
    return undefined; // the server reports the fault of the file
  }
}
