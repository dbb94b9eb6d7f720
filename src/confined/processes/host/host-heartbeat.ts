/**
 * Notices that the kernel host does not respond. A small message goes to it every two seconds, and no other process is woken. When
 * the host has not been used for a while, the message is sent only twice a minute, and as soon as the host is used or its state is
 * requested.
 *
 * Time is counted in beats of the server, not read from a clock: when the server or the machine was stopped, that counts as one
 * beat. A host that uses processor time is working, for example forking hundreds of kernels, and gets more time than a host that is
 * stopped or waits.
 */
import { readFileSync } from 'node:fs';

const BEAT_MS = 2000;
const REST_MS = 30_000;
/** Beats without use after which the heartbeat rests. */
const BEATS_BEFORE_REST = 5;
/**
 * After this many beats without an answer the host counts as silent, and later as lost. For an idle host the beats count
 * from the third one on, because the second one reads the processor time with which the next ones compare.
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
  /** Called with true when the host stops answering, and with false when it answers again. */
  readonly onSilence: (isSilent: boolean) => void;
  /** Called once, when the host counts as lost. */
  readonly onLost: () => void;
  /** Whether the heartbeat slows down while the host is unused; true when absent. */
  readonly rests?: boolean | undefined;
}

export class HostHeartbeat implements Disposable {
  readonly #options: HeartbeatOptions;
  #timer: NodeJS.Timeout | undefined;
  #everyMs = 0;
  /** Beats since the host was used. */
  #unused = 0;
  /** Beats since the unanswered question; 0 when the last question was answered. */
  #unanswered = 0;
  /** How many of the latest unanswered beats found that the host had done no work. */
  #idle = 0;
  #work: number | undefined;
  #isSilent = false;

  constructor(options: HeartbeatOptions) {
    this.#options = options;
  }

  start(): void {
    this.#beatEvery(BEAT_MS);
  }

  get isResting(): boolean {
    return this.#everyMs === REST_MS;
  }

  /** Called when the host is used. */
  used(): void {
    this.#unused = 0;
    this.attend();
  }

  /**
   * Called when somebody asks whether the host responds. This changes nothing for a host that responds.
   */
  attend(): void {
    if (this.isResting) this.beat();
  }

  /** Called when the host has answered. */
  answered(): void {
    this.#unanswered = 0;
    this.#idle = 0;
    if (!this.#isSilent) return;
    this.#isSilent = false;
    this.#options.onSilence(false);
  }

  /** One beat, called by the timer. */
  beat(): void {
    const { ask, workDone, onSilence, onLost, rests = true } = this.#options;
    if (this.isResting) this.#beatEvery(BEAT_MS);
    else if (rests && this.#unanswered === 0 && ++this.#unused > BEATS_BEFORE_REST) {
      this.#beatEvery(REST_MS);
      return;
    }
    this.#unanswered++;
    if (this.#unanswered === 1) {
      ask();
      return;
    }
    // Most questions are answered before the next beat, so the host's processor time is rarely read.
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

  #beatEvery(ms: number): void {
    clearInterval(this.#timer);
    this.#everyMs = ms;
    this.#timer = setInterval(() => this.beat(), ms).unref();
  }

  [Symbol.dispose](): void {
    clearInterval(this.#timer);
    this.#everyMs = 0;
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
