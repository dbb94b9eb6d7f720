import { readFileSync } from 'node:fs';
import { join } from 'node:path';

/** Name of the settings file, which is looked up in the working directory. */
export const CONFIG_FILE = 'troupe.config.json';

/**
 * Returns the members of `troupe.config.json` in `directory` as text, like environment variables; none when there is no
 * file. Calls `complain` with one sentence for each member that cannot be a setting, and for an unreadable file.
 */
export function readConfigFile(directory: string, complain: (problem: string) => void): Map<string, string> {
  const members = new Map<string, string>();
  const content = parseFile(join(directory, CONFIG_FILE), complain);
  if (content === undefined) return members;
  if (typeof content !== 'object' || content === null || Array.isArray(content)) {
    complain(`${CONFIG_FILE} must hold one JSON object.`);
    return members;
  }
  for (const [name, value] of Object.entries(content)) {
    const text = textOf(value);
    if (text === undefined)
      complain(`${name} in ${CONFIG_FILE} must be a string, a number, true, false or a list.`);
    else members.set(name, text);
  }
  return members;
}

function parseFile(path: string, complain: (problem: string) => void): unknown {
  let text: string;
  try {
    text = readFileSync(path, 'utf8');
  } catch (error) {
    if (!isMissing(error)) complain(`${path} cannot be read: ${messageOf(error)}`);
    return undefined;
  }
  try {
    return JSON.parse(text);
  } catch {
    // The parser's own message quotes the file, which may hold secrets.
    complain(`${path} is not valid JSON.`);
    return undefined;
  }
}

function textOf(value: unknown): string | undefined {
  if (typeof value === 'string') return value;
  if (typeof value === 'number' || typeof value === 'boolean') return String(value);
  if (Array.isArray(value) && value.every((entry) => typeof entry === 'string')) return value.join(',');
  return undefined;
}

function isMissing(error: unknown): boolean {
  return error instanceof Error && 'code' in error && error.code === 'ENOENT';
}

function messageOf(error: unknown): string {
  return error instanceof Error ? error.message : String(error);
}
