/** Exit codes of the program. Scripts rely on them; `troupe --help` shows them. */
export const EXIT = {
  ok: 0,
  /** The server refused the request, or the requested work failed. */
  failed: 1,
  usage: 2,
  /** The server did not answer. */
  unreachable: 3,
  /** A setting is wrong, or credentials are missing. */
  settings: 4,
  /** A run was cancelled, or the command was interrupted with Ctrl-C (128 + SIGINT, as in shells). */
  cancelled: 130,
} as const;

/** One of the exit codes. */
export type ExitCode = (typeof EXIT)[keyof typeof EXIT];

/** The exit codes with their meaning. */
export const EXIT_CODES: readonly { readonly code: ExitCode; readonly meaning: string }[] = [
  { code: EXIT.ok, meaning: 'success' },
  {
    code: EXIT.failed,
    meaning: 'the server refused the request, or the requested work (a run, code, a check) failed',
  },
  { code: EXIT.usage, meaning: 'the command line is wrong' },
  { code: EXIT.unreachable, meaning: 'the server did not answer' },
  { code: EXIT.settings, meaning: 'a setting is wrong, or credentials are missing' },
  { code: EXIT.cancelled, meaning: 'a run was cancelled, or the command was interrupted with Ctrl-C' },
];

/** The exit codes as they are printed below the help. */
export const EXIT_CODES_TEXT = [
  '\nExit codes:',
  ...EXIT_CODES.map(({ code, meaning }) => `${String(code).padStart(5)}  ${meaning}`),
].join('\n');

/** Ends a command that has already shown its outcome; only the exit code remains to be set. */
export class CommandEnd extends Error {
  readonly exitCode: ExitCode;
  constructor(exitCode: ExitCode) {
    super(`exit code ${exitCode}`);
    this.name = 'CommandEnd';
    this.exitCode = exitCode;
  }
}

/** A command that failed. The message is for people, the code for scripts. */
export class CommandFailure extends Error {
  readonly exitCode: ExitCode;
  constructor(message: string, exitCode: ExitCode = EXIT.failed) {
    super(message);
    this.name = 'CommandFailure';
    this.exitCode = exitCode;
  }
}
