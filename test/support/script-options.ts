/** The command line of programs for developers: `--help`, and one line for a mistake. */
import { type ParseArgsConfig, parseArgs } from 'node:util';

type Options = NonNullable<ParseArgsConfig['options']>;

/** Returns the options that the process was started with. With `--help`, or with a wrong option, it ends the process instead. */
export function scriptOptions<const T extends Options>(usage: string, options: T) {
  try {
    const { values } = parseArgs({ options: { ...options, help: { type: 'boolean', short: 'h' } } });
    if (!('help' in values)) return values;
    process.stdout.write(`${usage}\n`);
    process.exit(0);
  } catch (error) {
    const [line] = (error instanceof Error ? error.message : String(error)).split('\n');
    process.stderr.write(`${line}\n\n${usage}\n`);
    process.exit(2);
  }
}
