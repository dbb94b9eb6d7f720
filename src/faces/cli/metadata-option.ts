/** `--metadata key=value`: pairs with which notebooks, sessions and runs can be found. */
import { InvalidArgumentError, Option } from 'commander';

type Metadata = Readonly<Record<string, string>>;

/** Returns the repeatable option that sets metadata. */
export function metadataOption(of: string): Option {
  return new Option('--metadata <key=value>', `metadata of the ${of}; may be repeated`).argParser(
    (text: string, before: Metadata = {}) => ({ ...before, ...Object.fromEntries([pairOf(text)]) }),
  );
}

/** Returns the option of a list that selects entries with this metadata. */
export function metadataFilterOption(): Option {
  return new Option('--metadata <key=value>', 'only those with this metadata').argParser((text) =>
    pairOf(text).join('='),
  );
}

/** Returns the key and the value of a pair. Throws `InvalidArgumentError` for another text. */
function pairOf(text: string): [key: string, value: string] {
  const end = text.indexOf('=');
  if (end < 1) throw new InvalidArgumentError('It must be key=value.');
  return [text.slice(0, end), text.slice(end + 1)];
}
