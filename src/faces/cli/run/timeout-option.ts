import { InvalidArgumentError, Option } from 'commander';

/** Returns the option `--timeout`, the deadline of the requested work. */
export function timeoutOption(): Option {
  const description =
    'interrupt the run after so many seconds; it then counts as failed (default: no deadline)';
  return new Option('--timeout <seconds>', description).argParser(secondsOf);
}

/** Returns a number of seconds, at least 1. Throws `InvalidArgumentError` for another text. */
export function secondsOf(text: string): number {
  if (/^[1-9]\d{0,6}$/.test(text)) return Number(text);
  throw new InvalidArgumentError('It must be a whole number of seconds, at least 1.');
}
