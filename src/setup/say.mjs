// What set-up tells the person at the terminal: on standard error, because the server's log owns standard output.

/** Something the user has to put right; its message is one or a few plain lines, and nothing else is printed. */
export class SetupError extends Error {}

export function say(line) {
  process.stderr.write(`troupe: ${line}\n`);
}

/** Announces `title` and returns the function that announces its end with the time it took. */
export function began(title) {
  const startedAt = performance.now();
  say(`${title} …`);
  return () => say(`${title}: done in ${((performance.now() - startedAt) / 1000).toFixed(1)} s`);
}

/** Runs a program's `main`; a `SetupError` ends the process with its message and code 1. */
export async function reporting(main) {
  try {
    return await main();
  } catch (error) {
    if (!(error instanceof SetupError)) throw error;
    say(error.message);
    process.exit(1);
  }
}
