import type { CliContext } from './command-group.ts';
import { CommandFailure, EXIT } from './exit-code.ts';
import { readTextFile } from './run/notebook-file.ts';

/** Returns the JSON of a file, or of standard input for `-`. Throws `CommandFailure` with the position of a mistake. */
export async function readJsonInput(file: string, { cwd, input }: CliContext): Promise<unknown> {
  return file === '-'
    ? parsedJson(await input.read(), 'Standard input')
    : parsedJson(readTextFile(file, cwd), file);
}

/** Returns the JSON of a text. Throws `CommandFailure` with the position of a mistake and with `name`, the source of the text. */
export function parsedJson(text: string, name: string): unknown {
  try {
    return JSON.parse(text);
  } catch (error) {
    // The message shows only the position, because the text may be a credential.
    const place = /position \d+|line \d+ column \d+/.exec(error instanceof Error ? error.message : '')?.[0];
    const where = place === undefined ? '' : ` (${place})`;
    throw new CommandFailure(`${name} is not valid JSON${where}.`, EXIT.usage);
  }
}
