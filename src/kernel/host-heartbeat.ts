/**
 * Notices that the kernel host does not respond. A small message goes to it every two seconds, and nothing else is woken.
 *
 * Time is counted in beats of the server, not read from a clock: a server that was held up itself, or a machine that slept,
 * counts one beat, however long that took. A host that uses processor time is at work, as when it is to fork hundreds of
 * kernels, and gets longer than one that is stopped or waits for something.
 */
import { readFileSync } from 'node:fs';

const BEAT_MS = 2000;
/**
 * Beats without an answer after which the host is silent, and after which it is lost. The idle ones are counted from the
 * second beat after the question, which is the first that looks at the host's work.
 */
const MAX_BEATS = {
  idle: { silent: 1, lost: 7 },
  working: { silent: 5, lost: 30 },
} as const;

export interface HeartbeatOptions {
  /** Asks the host for an answer. */
  readonly ask: () => void;
  /** Returns the processor time that the host has used, in any unit; undefined when it cannot be known. */
  readonly workDone: () => number | undefined;
  /** Called with true when the host has become silent, and with false when it answers again. */
  readonly onSilence: (isSilent: boolean) => void;
  /** Called once, when the host is not to be waited for any longer. */
  readonly onLost: () => void;
}

export class HostHeartbeat implements Disposable {
  readonly #options: HeartbeatOptions;
  #timer: NodeJS.Timeout | undefined;
  /** Beats since the question that has no answer; 0 when it was answered. */
  #unanswered = 0;
  /** The last of these in which the host did no work. */
  #idle = 0;
  #work: number | undefined;
  #isSilent = false;

  constructor(options: HeartbeatOptions) {
    this.#options = options;
  }

  start(): void {
    this.#timer = setInterval(() => this.beat(), BEAT_MS).unref();
  }

  /** Called when the host has answered. */
  answered(): void {
    this.#unanswered = 0;
    this.#idle = 0;
    if (!this.#isSilent) return;
    this.#isSilent = false;
    this.#options.onSilence(false);
  }

  /** One beat. The timer calls it. */
  beat(): void {
    const { ask, workDone, onSilence, onLost } = this.#options;
    this.#unanswered++;
    if (this.#unanswered === 1) {
      ask();
      return;
    }
    // Most questions are answered before the next beat, so that nobody has to read what the host does.
    const work = workDone();
    if (this.#unanswered > 2) this.#idle = work === undefined || work === this.#work ? this.#idle + 1 : 0;
    this.#work = work;
    const waited = this.#unanswered - 1;
    const { idle, working } = MAX_BEATS;
    if (!this.#isSilent && (this.#idle >= idle.silent || waited >= working.silent)) {
      this.#isSilent = true;
      onSilence(true);
    }
    if (this.#idle < idle.lost && waited < working.lost) return;
    this[Symbol.dispose]();
    onLost();
  }

  [Symbol.dispose](): void {
    clearInterval(this.#timer);
  }
}

const USER_TIME = 11;
const SYSTEM_TIME = 12;

/** Returns the processor time of a process in clock ticks (proc_pid_stat(5)); undefined when it cannot be read. */
export function processorTicks(pid: number): number | undefined {
  try {
    const stat = readFileSync(`/proc/${pid}/stat`, 'latin1');
    const fields = stat.slice(stat.lastIndexOf(')') + 2).split(' ');
    return Number(fields[USER_TIME]) + Number(fields[SYSTEM_TIME]);
  } catch {
    return undefined;
  }
}
