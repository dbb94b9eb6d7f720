/** Command-line arguments of notebooks: `-p month=3`, and everything after `--`. */
import { InvalidArgumentError, Option } from 'commander';
import { CommandFailure, EXIT } from '../exit-code.ts';

/** Returns the repeatable option `-p`. Its value is the list of arguments so far. */
export function parameterOption(): Option {
  return new Option(
    '-p, --parameter <name=value>',
    'argument of the notebook, for mo.cli_args(); may be repeated. Everything after -- is passed on unchanged',
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

/** The line that begins the server's addition to papermill's cell (src/confined/python/conversion/parameters_cell.py). */
const ADDITION = '# arguments of the notebook, as `troupe run -p name=value` gives them';
/** The name of an argument that the addition takes. */
const TAKEN = /_arguments(?:\.get\(|\[)['"](\w+)['"]/g;
/** marimo's function, Python's `sys.argv`, and the common libraries that read it. A cell with one of these may take any argument. */
const READER =
  /\b(cli_args|argv|argparse|optparse|getopt|click|typer|fire|docopt|absl|tyro|simple_parsing|jsonargparse|hydra|cyclopts|cappa|defopt|plac)\b/;

/**
 * Throws when no cell takes an argument of `-p`. Otherwise a report for month 3 would silently be the report for month 1.
 * `parameters`: the arguments of `-p`, as `--name=value`; `codes`: the code of the cells.
 */
export function refuseUnreached(parameters: readonly string[], codes: readonly string[]): void {
  const taken = new Set<string>();
  for (const code of codes) {
    const [own = '', addition = ''] = code.split(ADDITION);
    if (READER.test(own)) return;
    for (const [, name = ''] of addition.matchAll(TAKEN)) taken.add(name);
  }
  const unreached = parameters.map((one) => one.replace(/^--|=.*/gs, '')).filter((name) => !taken.has(name));
  if (unreached.length === 0) return;
  const names = [...taken];
  const takes =
    names.length === 0
      ? 'Its cells do not read arguments (mo.cli_args()), and no cell with the tag parameters sets names.'
      : `Its cell with the tag parameters sets ${names.join(', ')}.`;
  throw new CommandFailure(
    `The notebook takes no argument ${unreached.join(', ')}. ${takes} To pass such arguments in any case, write them after --.`,
    EXIT.usage,
  );
}
