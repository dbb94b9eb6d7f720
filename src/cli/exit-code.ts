/** What the process ends with; part of the interface, and shown by `troupe --help`. */
export const EXIT = {
  ok: 0,
  /** The server refused, or what was asked for has failed. */
  failed: 1,
  usage: 2,
  /** No server answered. */
  unreachable: 3,
  /** A setting is wrong, or there are no credentials. */
  settings: 4,
  /** A run was cancelled, or the command was left with Ctrl-C; what shells give for an interrupt. */
  cancelled: 130,
} as const;

export type ExitCode = (typeof EXIT)[keyof typeof EXIT];

export const EXIT_CODES: readonly { readonly code: ExitCode; readonly meaning: string }[] = [
  { code: EXIT.ok, meaning: 'done' },
  {
    code: EXIT.failed,
    meaning: 'the server refused, or what was asked for has failed: a run, code, a check',
  },
  { code: EXIT.usage, meaning: 'the command was not understood' },
  { code: EXIT.unreachable, meaning: 'no server answered' },
  { code: EXIT.settings, meaning: 'a setting is wrong, or there are no credentials' },
  { code: EXIT.cancelled, meaning: 'a run was cancelled, or the command was interrupted with Ctrl-C' },
];

export const EXIT_CODES_TEXT = [
  '\nExit codes:',
  ...EXIT_CODES.map(({ code, meaning }) => `${String(code).padStart(5)}  ${meaning}`),
].join('\n');

/** The end of a command that has told its outcome already: nothing is left but the code for scripts. */
export class CommandEnd extends Error {
  readonly exitCode: ExitCode;
  constructor(exitCode: ExitCode) {
    super(`exit code ${exitCode}`);
    this.name = 'CommandEnd';
    this.exitCode = exitCode;
  }
}

/** A command that ended without doing its work; the message is for people, the code for scripts. */
export class CommandFailure extends Error {
  readonly exitCode: ExitCode;
  constructor(message: string, exitCode: ExitCode = EXIT.failed) {
    super(message);
    this.name = 'CommandFailure';
    this.exitCode = exitCode;
  }
}
