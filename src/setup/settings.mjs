// The settings of the server that set-up has to know. The server reads and checks all of them by itself (src/base/config/config.ts).
import { closeSync, constants, fstatSync, openSync, readFileSync } from 'node:fs';
import { join } from 'node:path';

/** The largest settings file that the server reads. */
const MAX_BYTES = 1 << 20;

/**
 * Returns the value of a setting in the environment, where it is called `variable`, or in the settings file of the folder `cwd`, where
 * it is called `name`. Returns undefined when neither the environment nor the file has the setting.
 */
export function settingOf(variable, name, cwd = process.cwd()) {
  if (process.env[variable]) return process.env[variable];
  try {
    return JSON.parse(textOf(join(cwd, 'troupe.config.json')))[name];
  } catch {
    return undefined; // there is no file, or the server will report its fault
  }
}

/**
 * Throws when the file is missing, larger than the limit, or not a regular file: a pipe, for example, would never
 * end.
 */
function textOf(path) {
  const file = openSync(path, constants.O_RDONLY | constants.O_NONBLOCK);
  try {
    const stats = fstatSync(file);
    if (!stats.isFile() || stats.size > MAX_BYTES) throw new Error('this is no settings file');
    return readFileSync(file, 'utf8');
  } finally {
    closeSync(file);
  }
}
