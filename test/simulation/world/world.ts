/**
 * The simulated world: virtual time, one queue of tasks, chance that one seed decides, and a trace of everything that happens.
 *
 * Each task is one callback of a real `setImmediate`, so Node.js itself runs promises, `nextTick` and `queueMicrotask` after it, in
 * the order of a real server. Tasks belong to a life: a life that is over runs no more. Something real that a task needs, such as the
 * loading of a module, stops the world until it is there (`stopWorldFor`).
 */
import { createHash } from 'node:crypto';
import { SeededRandom } from '#test/support/random.ts';
import { real } from './real.ts';
import { TaskHeap } from './task-heap.ts';
import { WallClock } from './wall-clock.ts';

/** One life of a process of the world. `OUTSIDE` is everything that is no part of a server. */
export interface Life {
  readonly name: string;
  /** The graph of modules that the process has for itself; undefined when it is the only one that serves. */
  readonly graph?: string;
  /** When it began, as far as that matters. */
  readonly sinceMs?: number;
  isOver: boolean;
  /** Until when the process is stopped; undefined when it was never stopped. */
  stoppedUntilMs?: number;
}

export const OUTSIDE: Life = { name: 'outside', isOver: false };

/** Something that happens at a time. */
export interface Task {
  atMs: number;
  /** Orders tasks of the same time. */
  number: number;
  readonly life: Life;
  readonly act: () => void;
  isCancelled: boolean;
}

/** The nature of a world with a primary and workers. */
export interface NatureOfProcesses {
  /** The share of messages between processes that take long. */
  readonly slowLinks: number;
  /** The most that a process takes until its program begins. */
  readonly forkMs: number;
  /** The average time between the misfortunes of workers. */
  readonly misfortuneEveryMs: number;
}

/** The nature of a world with jobs. */
export interface NatureOfJobs {
  /** How many users make jobs. */
  readonly schedulers: number;
  /** The average time until somebody sets the clock, where there are jobs; infinite where nobody does. */
  readonly setClockEveryMs: number;
}

/** The nature of a world with hooks. */
export interface NatureOfHooks {
  /** How many users make hooks. */
  readonly hookers: number;
}

/** The nature of a world in which some things never end by themselves. */
export interface NatureOfDeadlines {
  /** The share of kernels that hang at their start, at their stop, or in the system when they are killed. */
  readonly stubbornKernels: number;
  /** The longest time of one prompt, as a setting of the server. */
  readonly promptLimitS: number;
}

/** The nature of a world with kernels on nodes. */
export interface NatureOfNodes {
  /** The most that bytes are usually on their way between the server and a node. */
  readonly wireMs: number;
  /** The share of pieces that take longer. */
  readonly slowWires: number;
  /** The average time between the misfortunes of nodes. */
  readonly nodeMisfortuneEveryMs: number;
}

/** The nature of one world. Each seed draws its own, so that together the seeds try many. */
export interface Nature
  extends NatureOfProcesses,
    NatureOfJobs,
    NatureOfDeadlines,
    NatureOfHooks,
    NatureOfNodes {
  readonly flushMs: number;
  readonly slowFlush: number;
  readonly netMs: number;
  readonly slowNet: number;
  readonly kernelMs: number;
  readonly slowKernel: number;
  /** The share of reads of a kernel's connection that begin late, because the event loop is busy. */
  readonly busyLoop: number;
  readonly editMs: number;
  readonly thinkMs: number;
  readonly bursts: number;
  readonly crashEveryMs: number;
  /** How many callbacks one turn of the event loop may take before its `setImmediate` phase. */
  readonly crowd: number;
  /** The most that a signal takes to a kernel: a kernel host that forks hands it on later. */
  readonly signalMs: number;
  /** The most that passes between two looks at a clock within one task. On a slow machine, slices of work end early. */
  readonly lookMs: number;
  /** Whether users run code that ignores interrupts, so that kernels are killed. */
  readonly deaf: boolean;
  /** How many users talk with agents. */
  readonly talkers: number;
  /** Whether the disk is full, slow or broken now and then. */
  readonly troubles: boolean;
}

/** The longest time of a task of which nobody knows better. A server of this project has turns of some ten microseconds. */
const MAX_TURN_MS = 0.05;
/** A world in which nothing is left to happen waits this long for something real before it gives up. */
const IDLE_LIMIT_MS = 5000;
/** A simulation ends so long after its first problem, because a server with a fault may be busy without an end. */
const AFTER_PROBLEM_MS = 500;
/** No simulation takes so long. */
const MAX_MS = 3_600_000;
const MAX_PENDING_CHARS = 64 * 1024;

export class World {
  readonly seed: number;
  /** Milliseconds since the beginning. */
  nowMs = 0;
  /** The clock that everybody sees. */
  readonly clock = new WallClock(this);
  /** The life whose task runs. */
  life = OUTSIDE;
  readonly nature: Nature;
  /** The chance that the server draws from. */
  readonly ofServer: SeededRandom;
  readonly ofNet: SeededRandom;
  readonly ofDisk: SeededRandom;
  readonly ofKernels: SeededRandom;
  readonly ofUsers: SeededRandom;
  readonly ofFate: SeededRandom;
  /** The chance of messages between processes. */
  readonly ofLinks: SeededRandom;
  /** The chance of kernels that hang. */
  readonly ofHangs: SeededRandom;
  /** The chance of the receivers of hooks. */
  readonly ofReceivers: SeededRandom;
  /** The chance of connections between the server and its nodes. */
  readonly ofWires: SeededRandom;
  /** The chance of nodes, and of their failures. */
  readonly ofNodes: SeededRandom;
  readonly #ofTurns: SeededRandom;
  readonly trace: Trace;
  /** Called at each moment at which the code of the server lets tests crash it. */
  atFaultPoint: ((point: string) => void) | undefined;
  /** Called when the server says something in answer to a request of a client. */
  atReply: ((method: string, path: string) => void) | undefined;
  /** Faults of the server, or of this simulation. */
  readonly problems: string[] = [];
  readonly counts = new Map<string, number>();
  turns = 0;
  /** How often the world waited for something real that nobody has announced, which makes a trace depend on chance. */
  realWaits = 0;
  readonly #tasks = new TaskHeap();
  readonly #ends = new Map<Life, (() => void)[]>();
  #immediates: Task[] = [];
  #checking: Task[] = [];
  #left = 1;
  #number = 0;
  #stopped = 0;
  /** Whether tasks happen. */
  isRunning = false;
  /** Whether kernels run on nodes. */
  hasNodes = false;
  /** Until when a misfortune of nodes may have consequences. */
  nodesTroubledUntilMs = 0;
  /** Whether misfortunes befall the server and its kernels. */
  isDisturbed = true;
  #isOver = false;
  /** When the world ends because of a problem; undefined without one. */
  #endMs: number | undefined;
  #work: Promise<unknown> = Promise.resolve();
  #resume: (() => void) | undefined;

  constructor(seed: number, keepsTrace = false) {
    this.seed = seed;
    const random = new SeededRandom(seed);
    [this.ofServer, this.ofNet, this.ofDisk, this.ofKernels] = [
      random.fork(),
      random.fork(),
      random.fork(),
      random.fork(),
    ];
    [this.ofUsers, this.ofFate, this.#ofTurns] = [random.fork(), random.fork(), random.fork()];
    const nature = natureOf(random.fork());
    this.ofLinks = random.fork();
    const ofProcesses = natureOfProcesses(random.fork());
    const ofJobs = natureOfJobs(random.fork());
    const ofDeadlines = natureOfDeadlines(random.fork());
    this.ofHangs = random.fork();
    const ofHooks = natureOfHooks(random.fork(), ofJobs);
    this.ofReceivers = random.fork();
    this.ofWires = random.fork();
    this.ofNodes = random.fork();
    const ofNodes = natureOfNodes(random.fork());
    // A kernel that stays in the system after a kill is met only where kernels are killed.
    const deaf = nature.deaf || ofDeadlines.stubbornKernels > 0.1;
    this.nature = { ...nature, ...ofProcesses, ...ofJobs, ...ofDeadlines, ...ofHooks, ...ofNodes, deaf };
    this.trace = new Trace(this, keepsTrace);
  }

  /** Counts something that happened, for the report. */
  count(what: string, times = 1): void {
    this.counts.set(what, (this.counts.get(what) ?? 0) + times);
  }

  /** Returns the time at one look at a clock, which takes time itself. */
  look(): number {
    this.nowMs += this.nature.lookMs * (this.nature.lookMs > MAX_TURN_MS ? this.#ofTurns.next() : 1);
    return this.nowMs;
  }

  problem(text: string): void {
    if (this.problems.includes(text)) return;
    this.#endMs ??= this.nowMs + AFTER_PROBLEM_MS;
    this.problems.push(text);
    this.trace.add('PROBLEM', text);
  }

  /** Runs `act` as a task of `life` after `delayMs`. */
  after(delayMs: number, act: () => void, life = this.life): Task {
    const task = {
      atMs: this.nowMs + Math.max(0, delayMs),
      number: this.#number++,
      life,
      act,
      isCancelled: false,
    };
    this.#tasks.push(task);
    return task;
  }

  /** Runs `act` in the `setImmediate` phase of this turn of the event loop. */
  immediately(act: () => void): Task {
    const task = { atMs: this.nowMs, number: this.#number++, life: this.life, act, isCancelled: false };
    this.#immediates.push(task);
    return task;
  }

  /** Resolves after a time, in the life of the caller. */
  sleep(ms: number): Promise<void> {
    return new Promise((resolve) => void this.after(ms, resolve));
  }

  /** Ends a life at once: nothing of it happens any more. */
  end(life: Life): void {
    life.isOver = true;
    this.#tasks.removeWhere((task) => task.life === life);
    const acts = this.#ends.get(life) ?? [];
    this.#ends.delete(life);
    for (const act of acts) act();
  }

  /** Calls `act` when a life ends: the system closes what a process has left open. */
  atEnd(life: Life, act: () => void): void {
    const acts = this.#ends.get(life);
    if (acts === undefined) this.#ends.set(life, [act]);
    else acts.push(act);
  }

  /** Stops the world until something real has happened, such as the loading of a module. Several happen one after the other. */
  stopWorldFor<T>(act: () => T | Promise<T>): Promise<T> {
    this.#stopped++;
    const result = this.#work.then(act);
    const goOn = () => {
      // After the code that waited for the result.
      real.setImmediate(() => {
        if (--this.#stopped === 0) this.#resume?.();
      });
    };
    this.#work = result.then(goOn, goOn);
    return result;
  }

  /** Lets the world happen until `main`, a task outside of all servers, has ended. */
  run(main: () => Promise<void>): Promise<void> {
    this.isRunning = true;
    return new Promise((resolve) => {
      let idleSinceMs: number | undefined;
      const pump = (): void => {
        this.#resume = undefined;
        if (this.#isOver) {
          this.isRunning = false;
          resolve();
          return;
        }
        if (this.#stopped > 0) {
          this.#resume = () => void real.setImmediate(pump);
          return;
        }
        const task = this.#next();
        if (this.nowMs > MAX_MS) {
          this.problem('the simulation does not end');
          this.#isOver = true;
        }
        if (this.#endMs !== undefined && this.nowMs > this.#endMs) this.#isOver = true;
        if (task !== undefined) {
          idleSinceMs = undefined;
          this.#perform(task);
          real.setImmediate(pump);
          return;
        }
        idleSinceMs ??= real.now();
        this.realWaits++;
        if (real.now() - idleSinceMs > IDLE_LIMIT_MS) {
          this.problem('nothing is left to happen, and the simulation is not over');
          this.#isOver = true;
        }
        real.setTimeout(pump, 1);
      };
      this.after(
        0,
        () => {
          main()
            .catch((error: unknown) => this.problem(`the simulation itself failed: ${textOf(error)}`))
            .finally(() => {
              this.#isOver = true;
            });
        },
        OUTSIDE,
      );
      real.setImmediate(pump);
    });
  }

  /** Takes the error of a task, which would have ended a real process. */
  uncaught(error: unknown): void {
    if (this.life.isOver) return; // it was killed in the middle of a task
    this.problem(`an error that nothing caught, in ${this.life.name}: ${textOf(error)}`);
  }

  #perform({ life, act, atMs }: Task): void {
    this.life = life;
    this.nowMs = Math.max(this.nowMs, atMs) + this.#ofTurns.next() * MAX_TURN_MS;
    this.turns++;
    try {
      act();
    } catch (error) {
      this.uncaught(error);
    }
  }

  /** Returns the next task as an event loop takes them: what is due, up to a number, then what `setImmediate` was given until then. */
  #next(): Task | undefined {
    for (;;) {
      const task = this.#take();
      if (task === undefined) return task;
      if (task.isCancelled || task.life.isOver) continue;
      const { stoppedUntilMs = 0 } = task.life;
      if (stoppedUntilMs <= Math.max(this.nowMs, task.atMs)) return task;
      // Tasks of a process that is stopped happen afterwards, in their order.
      task.atMs = stoppedUntilMs;
      task.number = this.#number++;
      this.#tasks.push(task);
    }
  }

  #take(): Task | undefined {
    const checked = this.#checking.shift();
    if (checked !== undefined) return checked;
    const first = this.#tasks.first;
    const isDue = first !== undefined && first.atMs <= this.nowMs;
    if (this.#left > 0 && isDue) {
      this.#left--;
      return this.#tasks.take();
    }
    this.#left = 1 + this.#ofTurns.below(this.nature.crowd);
    if (this.#immediates.length === 0) return this.#tasks.take();
    this.#checking = this.#immediates;
    this.#immediates = [];
    return this.#checking.shift();
  }
}

function natureOfProcesses(random: SeededRandom): NatureOfProcesses {
  return {
    slowLinks: random.pick([0, 0.01, 0.1]),
    forkMs: random.pick([5, 60, 60, 400]),
    misfortuneEveryMs: random.pick([800, 3000, 3000, 10_000]),
  };
}

function natureOfJobs(random: SeededRandom): NatureOfJobs {
  return {
    schedulers: random.pick([0, 0, 0, 1]),
    setClockEveryMs: random.pick([Number.POSITIVE_INFINITY, 2000, 6000]),
  };
}

function natureOfNodes(random: SeededRandom): NatureOfNodes {
  return {
    wireMs: random.pick([0.3, 1, 1, 5]),
    slowWires: random.pick([0, 0.02, 0.02, 0.2]),
    nodeMisfortuneEveryMs: random.pick([1500, 4000, 4000, 15_000]),
  };
}

function natureOfDeadlines(random: SeededRandom): NatureOfDeadlines {
  return {
    stubbornKernels: random.pick([0, 0, 0.05, 0.3]),
    promptLimitS: random.pick([1800, 4, 4]),
  };
}

/** A clock that is set forward by hours makes thousands of events of jobs, which cost too much where hooks want them. */
function natureOfHooks(random: SeededRandom, { schedulers }: NatureOfJobs): NatureOfHooks {
  return { hookers: random.is(0.25) && schedulers === 0 ? 1 : 0 };
}

function natureOf(
  random: SeededRandom,
): Omit<
  Nature,
  | keyof NatureOfProcesses
  | keyof NatureOfJobs
  | keyof NatureOfDeadlines
  | keyof NatureOfHooks
  | keyof NatureOfNodes
> {
  return {
    flushMs: random.pick([0.5, 2, 2, 20]),
    slowFlush: random.pick([0, 0.03, 0.03, 0.2]),
    netMs: random.pick([0.3, 1, 1, 10]),
    slowNet: random.pick([0, 0.05, 0.3]),
    kernelMs: random.pick([0.3, 0.5, 5]),
    slowKernel: random.pick([0, 0.03, 0.3]),
    editMs: random.pick([0.5, 2, 30, 300]),
    thinkMs: random.pick([10, 60, 60, 400]),
    bursts: random.pick([0, 0.1, 0.3]),
    crashEveryMs: random.pick([1500, 6000, 6000, 20_000]),
    crowd: random.pick([1, 1, 2, 8]),
    signalMs: random.pick([1, 1, 30]),
    lookMs: random.pick([0.001, 0.001, 0.001, 1]),
    deaf: random.is(0.2),
    talkers: random.pick([0, 0, 1, 2]),
    troubles: random.is(0.3),
    busyLoop: random.pick([0, 0.1, 0.5]),
  };
}

/** Everything that happens, as a digest, and as lines if they are kept. */
export class Trace {
  readonly lines: string[] | undefined;
  readonly #world: Pick<World, 'nowMs'>;
  readonly #hash = createHash('sha256');
  /** Lines that are not in the hash yet, because it is faster with long texts. */
  #pending = '';

  constructor(world: Pick<World, 'nowMs'>, keepsLines: boolean) {
    this.#world = world;
    this.lines = keepsLines ? [] : undefined;
  }

  add(kind: string, text: string): void {
    const line = `${this.#world.nowMs.toFixed(3)} ${kind} ${text}\n`;
    this.#pending += line;
    if (this.#pending.length > MAX_PENDING_CHARS) this.#settle();
    this.lines?.push(line);
  }

  #settle(): void {
    this.#hash.update(this.#pending);
    this.#pending = '';
  }

  get digest(): string {
    this.#settle();
    return this.#hash.copy().digest('hex').slice(0, 16); // hexadecimal, so it is cut between characters
  }
}

export function textOf(error: unknown): string {
  return error instanceof Error ? (error.stack ?? error.message) : String(error);
}

let present: World | undefined;

/** Returns the present world. */
export function world(): World {
  if (present === undefined) throw new Error('There is no world yet.');
  return present;
}

/** Makes `next` the present world. */
export function enter(next: World): void {
  present = next;
}
