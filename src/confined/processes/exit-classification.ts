import { constants } from 'node:os';
import { type KernelLimits, limitBehindSignal, reachedMemoryLimit } from './limits.ts';

export interface KernelExit {
  readonly cause:
    | 'kernel_exited'
    | 'kernel_killed'
    | 'kernel_out_of_memory'
    | 'kernel_start_failed'
    | 'kernel_host_lost'
    | 'kernel_protocol_error'
    | 'stopped';
  /** The exit code of a process that ended by itself and reported the code in time. */
  readonly code: number | null;
  readonly signal: string | null;
  /** One sentence for people. */
  readonly message: string;
}

/** The end of a process as the operating system reports it. */
export interface ProcessEnd {
  readonly code: number;
  readonly signal: number | null;
  /**
   * Whether the process was killed because it and its child processes together exceeded their memory limit.
   */
  readonly outOfMemory?: boolean;
  /** Whether its machine killed a process for lack of memory. Absent where this server can find that out by itself. */
  readonly machineOutOfMemory?: boolean;
  /** The text that the process printed on its standard error before it began to work; empty once it has begun. */
  readonly words?: string;
}

/** All that is known when a kernel is reported gone. */
export interface EndFacts {
  readonly wasReady: boolean;
  readonly asked: 'kill' | 'stop' | null;
  readonly hostLost: boolean;
  /**
   * The server's reason for ending the kernel: a broken frame, or a start that failed or took too
   * long.
   */
  readonly refusal: {
    readonly cause: 'kernel_protocol_error' | 'kernel_start_failed';
    readonly message: string;
  } | null;
  /** Null when the socket has ended but the host has not reported the end of the process in time. */
  readonly end: ProcessEnd | null;
  /**
   * Returns whether the machine has killed a process for lack of memory. Called only when that
   * would explain the end.
   */
  readonly wasOutOfMemory: () => boolean;
  readonly limits: KernelLimits;
}

const SIGNAL_NAMES: ReadonlyMap<number, string> = new Map(
  Object.entries(constants.signals)
    .reverse() // of two names of one signal, such as SIGABRT and SIGIOT, the better known name is first
    .map(([name, number]) => [number, name]),
);

/** Returns why a kernel ended. An action of the server takes precedence over the process's own exit status. */
export function classifyExit(facts: EndFacts): KernelExit {
  const end = facts.end;
  const signal = end?.signal == null ? null : (SIGNAL_NAMES.get(end.signal) ?? `signal ${end.signal}`);
  const code = end === null || signal !== null ? null : end.code;
  if (facts.asked === 'stop') return { cause: 'stopped', code, signal, message: 'The kernel was stopped.' };
  if (facts.asked === 'kill') {
    return {
      cause: 'kernel_killed',
      code: null,
      signal: 'SIGKILL',
      message: 'The server killed the kernel.',
    };
  }
  if (facts.refusal !== null) return { code, signal, ...facts.refusal };
  if (facts.hostLost) {
    const message = 'The process that runs all kernels has ended, and this kernel with it.';
    return { cause: 'kernel_host_lost', code, signal, message };
  }
  const how = describeEnd(code, signal) + describeError(end?.words ?? '');
  if (!facts.wasReady) {
    return { cause: 'kernel_start_failed', code, signal, message: `The kernel did not start: ${how}.` };
  }
  if (end?.outOfMemory === true) {
    const message = `The kernel was killed${reachedMemoryLimit(facts.limits)}.`;
    return { cause: 'kernel_out_of_memory', code, signal, message };
  }
  if (signal === 'SIGKILL' && facts.wasOutOfMemory()) {
    const message = 'The kernel was killed because the machine ran out of memory.';
    return { cause: 'kernel_out_of_memory', code, signal, message };
  }
  if (signal === null) return { cause: 'kernel_exited', code, signal, message: `The kernel ended: ${how}.` };
  const hint = limitBehindSignal(signal, facts.limits);
  return { cause: 'kernel_killed', code, signal, message: `The kernel ended: ${how}${hint}.` };
}

function describeEnd(code: number | null, signal: string | null): string {
  if (signal === 'SIGSEGV') return 'native code crashed it (SIGSEGV)';
  if (signal !== null) return `it was killed by ${signal}`;
  if (code === null) return 'it closed its connection';
  return `its process exited with code ${code}`;
}

/**
 * Returns the Python error at the end of the text, in brackets; empty when there is none. The
 * error's own text is included only for errors of the operating system, because other texts may
 * name paths of the server.
 */
function describeError(words: string): string {
  if (lacksProcesses(words)) return ` (${NO_PROCESSES})`;
  const [, type, reason] =
    /^(?:[\w.]+\.)?([A-Z]\w*)(?::(?: \[Errno \d+\] ([\w ,/()-]+))?|$)/m.exec(lastLine(words)) ?? [];
  if (type === undefined) return '';
  return reason === undefined ? ` (${type})` : ` (${type}: ${reason.trim()})`;
}

const NO_PROCESSES =
  'no process or thread could be started, because a limit of processes is reached: raise TasksMax of the unit, the limit of the ' +
  'container (--pids-limit) or of the user (ulimit -u), or open fewer sessions; TROUPE_KERNEL_PROCESSES limits each kernel';

/** Returns whether the text ends with the error of Python, or of the system, for a process or thread that cannot be made. */
function lacksProcesses(words: string): boolean {
  return /^RuntimeError: can't (start|allocate) new thread|^BlockingIOError: \[Errno 11\]/.test(
    lastLine(words),
  );
}

/**
 * Returns the reason why the kernel host could not fork: a sentence for a reached limit, and otherwise the
 * host's error.
 */
export function describeRefusal(reason: string): string {
  return reason.startsWith('[Errno 11]') ? `${NO_PROCESSES}.` : reason;
}

function lastLine(text: string): string {
  return text.slice(text.lastIndexOf('\n') + 1);
}
