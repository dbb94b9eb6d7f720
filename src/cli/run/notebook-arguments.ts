/** Command-line arguments of notebooks: `-p month=3`, and everything after `--`. */
import { InvalidArgumentError, Option } from 'commander';

/** Returns the repeatable option `-p`. Its value is the list of arguments so far. */
export function parameterOption(): Option {
  return new Option(
    '-p, --parameter <name=value>',
    'argument of the notebook, which mo.cli_args() has; may be repeated. Everything after -- is passed on unchanged',
  )
    .argParser(parameter)
    .default([], 'none');
}

function parameter(text: string, before: readonly string[]): string[] {
  if (!/^[^\s=-][^\s=]*(=|$)/.test(text)) throw new InvalidArgumentError('It must be name=value.');
  return [...before, `--${text}`];
}

/** Returns all arguments of the notebook; undefined when there are none. */
export function argumentsOf(
  parameters: readonly string[],
  passedOn: readonly string[],
): readonly string[] | undefined {
  const all = [...parameters, ...passedOn];
  return all.length === 0 ? undefined : all;
}
