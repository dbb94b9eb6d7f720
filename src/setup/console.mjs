// Messages of set-up for people. They go to standard error, because standard output belongs to the server's log.

/** A mistake that the user has to correct. Only its message, of one or a few plain lines, is printed. */
export class SetupError extends Error {}

/** Prints a line. */
export function say(line) {
  process.stderr.write(`troupe: ${line}\n`);
}

/** Announces that `title` begins. Returns a function that announces its end and how long it took. */
export function began(title) {
  const startedAt = performance.now();
  say(`${title} …`);
  return () => say(`${title}: done in ${((performance.now() - startedAt) / 1000).toFixed(1)} s`);
}

/** Returns the result of `main`. A `SetupError` is printed and ends the process with code 1. */
export async function reporting(main) {
  try {
    return await main();
  } catch (error) {
    if (!(error instanceof SetupError)) throw error;
    say(error.message);
    process.exit(1);
  }
}
