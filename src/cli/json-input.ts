import type { CliContext } from './command-group.ts';
import { CommandFailure, EXIT } from './exit-code.ts';
import { readTextFile } from './run/notebook-file.ts';

/** The JSON in a file, or on standard input for `-`. Throws `CommandFailure` that says where it is broken. */
export async function readJsonInput(file: string, { cwd, input }: CliContext): Promise<unknown> {
  const text = file === '-' ? await input.read() : readTextFile(file, cwd);
  try {
    return JSON.parse(text);
  } catch (error) {
    // Where, but not what: the text may be a credential.
    const place = /position \d+|line \d+ column \d+/.exec(error instanceof Error ? error.message : '')?.[0];
    const where = place === undefined ? '' : ` (${place})`;
    throw new CommandFailure(`${file === '-' ? 'Standard input' : file} is not JSON${where}.`, EXIT.usage);
  }
}
