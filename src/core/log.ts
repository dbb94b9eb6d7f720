/**
 * The log: one JSON line for each event, on standard output. Lines are written in the background; what is still
 * held is written when the process exits, also by `process.exit`.
 *
 * Every field passes `log-fields.ts` on its way, so nothing has to be remembered where something is logged.
 */
import { type DestinationStream, type Logger, pino } from 'pino';
import { type Fields, type Scrubber, scrubber, visibleFields } from './log-fields.ts';
import { LogOutput } from './log-output.ts';
import type { Secret } from './secret.ts';

export type LogLevel = 'fatal' | 'error' | 'warn' | 'info' | 'debug' | 'trace' | 'silent';

type Write = (fields: Fields, message: string) => void;

/** Errors go in `err`, requests in `request`; both are cut down to members that are safe to show. */
export interface Log {
  readonly fatal: Write;
  readonly error: Write;
  readonly warn: Write;
  readonly info: Write;
  readonly debug: Write;
  readonly trace: Write;
  /** A log whose every line also has `fields`, such as `requestId` and `workspaceId`. */
  child(fields: Fields): Log;
}

export interface RootLog extends Log {
  /** Writes what is held, now. */
  flush(): void;
}

export interface LogOptions {
  readonly level: LogLevel;
  /** Hidden wherever they appear, whatever they are called there. */
  readonly secrets?: readonly Secret[];
  /** Standard output when absent. */
  readonly destination?: DestinationStream & { flushSync?(): void };
}

/** Opens the log of this process. */
export function openLog({ level, secrets = [], destination = standardOutput() }: LogOptions): RootLog {
  const logger = pino(
    {
      level,
      base: null,
      timestamp: pino.stdTimeFunctions.isoTime,
      formatters: { level: (label) => ({ level: label }) },
      serializers: { err: (value: unknown) => value },
    },
    destination,
  );
  const log = wrap(logger, scrubber(secrets));
  return { ...log, flush: () => destination.flushSync?.() };
}

function standardOutput(): LogOutput {
  const output = new LogOutput(process.stdout.fd);
  process.on('exit', () => output.flushSync());
  return output;
}

function wrap(logger: Logger, scrub: Scrubber): Log {
  const at =
    (level: Exclude<LogLevel, 'silent'>): Write =>
    (fields, message) => {
      if (logger.isLevelEnabled(level)) logger[level](visibleFields(fields, scrub), scrub(message));
    };
  return {
    fatal: at('fatal'),
    error: at('error'),
    warn: at('warn'),
    info: at('info'),
    debug: at('debug'),
    trace: at('trace'),
    child: (fields) => wrap(logger.child(visibleFields(fields, scrub)), scrub),
  };
}
