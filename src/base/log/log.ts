/**
 * The log: one JSON line per event, on standard output. Lines are written in the background; those that wait are written
 * when the process exits, also with `process.exit`.
 *
 * Every field passes through `log-fields.ts`, so callers need not remove secrets themselves. Of warnings and errors with the same
 * message at most 100 are written in ten seconds; then one line with `leftOut` has the number of the others.
 */
import { type DestinationStream, type Logger, pino } from 'pino';
import type { Secret } from '../caller/secret.ts';
import { type Fields, type Scrubber, scrubber, visibleFields } from './log-fields.ts';
import { LogFlood } from './log-flood.ts';
import { LogOutput, SHARED_PIPE_BYTES } from './log-output.ts';
import { RecentLines } from './recent-lines.ts';

/** Levels of severity; `silent` logs nothing. */
export type LogLevel = 'fatal' | 'error' | 'warn' | 'info' | 'debug' | 'trace' | 'silent';

type Write = (fields: Fields, message: string) => void;

/** Writes lines. Errors belong in the field `err`, requests in `request`: both are reduced to their safe members. */
export interface Log {
  readonly fatal: Write;
  readonly error: Write;
  readonly warn: Write;
  readonly info: Write;
  readonly debug: Write;
  readonly trace: Write;
  /** Returns a log that adds `fields`, such as `requestId` and `workspaceId`, to every line. */
  child(fields: Fields): Log;
}

/** The log of the process. */
export interface RootLog extends Log {
  /** Writes all waiting lines before it returns. The last of the earlier lines may come after them. */
  flush(): void;
  /** Resolves when all lines are written, in their order, or their reader does not take them in time. */
  written(): Promise<void>;
  /** Returns the last lines, oldest first. */
  recent(): readonly string[];
  /** Returns this log for a worker of a server: its number is in every line from now on. */
  ofWorker(worker: number): RootLog;
}

/** How the log is written. */
export interface LogOptions {
  readonly level: LogLevel;
  /** Secrets that are hidden wherever they appear. */
  readonly secrets?: readonly Secret[];
  /** Whether other processes of this server write to the same standard output. */
  readonly isShared?: boolean;
  /** Standard output when absent. */
  readonly destination?: DestinationStream & { flushSync?(): void; written?(): Promise<void> };
}

/** Returns the log of this process. */
export function openLog(options: LogOptions): RootLog {
  const { level, secrets = [], isShared = false, destination = standardOutput(isShared) } = options;
  const recent = new RecentLines();
  const logger = pino(
    {
      level,
      base: null,
      timestamp: pino.stdTimeFunctions.isoTime,
      formatters: { level: (label) => ({ level: label }) },
      serializers: { err: (value: unknown) => value },
    },
    {
      write(line) {
        recent.add(line);
        destination.write(line);
      },
    },
  );
  const rootOf = (log: Log): RootLog => ({
    ...log,
    flush: () => destination.flushSync?.(),
    written: async () => destination.written?.(),
    recent: () => recent.list(),
    ofWorker: (worker) => rootOf(log.child({ worker })),
  });
  return rootOf(wrap(logger, scrubber(secrets), new LogFlood()));
}

function standardOutput(isShared: boolean): LogOutput {
  const output = new LogOutput(process.stdout.fd, isShared ? SHARED_PIPE_BYTES : undefined);
  process.on('exit', () => output.flushSync());
  return output;
}

function wrap(logger: Logger, scrub: Scrubber, flood: LogFlood): Log {
  const at =
    (level: Exclude<LogLevel, 'silent'>): Write =>
    (fields, message) => {
      if (logger.isLevelEnabled(level)) logger[level](visibleFields(fields, scrub), scrub(message));
    };
  /** Returns the same function for warnings and errors, which clients can cause: lines with one message are limited. */
  const limited = (level: 'error' | 'warn'): Write => {
    const write = at(level);
    return (fields, message) => {
      const tell = (leftOut: number) => write({ leftOut }, message);
      if (flood.admits(`${level} ${message}`, tell)) write(fields, message);
    };
  };
  return {
    fatal: at('fatal'),
    error: limited('error'),
    warn: limited('warn'),
    info: at('info'),
    debug: at('debug'),
    trace: at('trace'),
    child: (fields) => wrap(logger.child(visibleFields(fields, scrub)), scrub, flood),
  };
}
