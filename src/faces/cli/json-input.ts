import type { CliContext } from './command-group.ts';
import { CommandFailure, EXIT } from './exit-code.ts';
import { readTextFile } from './run/notebook-file.ts';

/** Returns the JSON of a file, or of standard input for `-`. Throws `CommandFailure` with the position of a mistake. */
export async function readJsonInput(file: string, { cwd, input }: CliContext): Promise<unknown> {
  const text = file === '-' ? await input.read() : readTextFile(file, cwd);
  try {
    return JSON.parse(text);
  } catch (error) {
    // Only the position is shown: the text may be a credential.
    const place = /position \d+|line \d+ column \d+/.exec(error instanceof Error ? error.message : '')?.[0];
    const where = place === undefined ? '' : ` (${place})`;
    throw new CommandFailure(
      `${file === '-' ? 'Standard input' : file} is not valid JSON${where}.`,
      EXIT.usage,
    );
  }
}
