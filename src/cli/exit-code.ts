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
} as const;

export type ExitCode = (typeof EXIT)[keyof typeof EXIT];

export const EXIT_CODES_TEXT = `
Exit codes:
  0  done
  1  the server refused, or what was asked for has failed
  2  the command was not understood
  3  no server answered
  4  a setting is wrong, or there are no credentials`;

/** A command that ended without doing its work; the message is for people, the code for scripts. */
export class CommandFailure extends Error {
  readonly exitCode: ExitCode;
  constructor(message: string, exitCode: ExitCode = EXIT.failed) {
    super(message);
    this.name = 'CommandFailure';
    this.exitCode = exitCode;
  }
}
