/**
 * Keeps kernel nodes running on a Ray cluster. Each node is one Ray job, whose command is `troupe node join`: Ray finds a machine that
 * offers the resource `troupe_host`, or asks its autoscaler for one, and ends the command when the job ends. The server posts a job
 * for each node that is missing, with an invitation that works once, because no other secret may pass through the engine.
 *
 * Only connections decide which nodes are alive. When Ray cannot be asked, the nodes go on, and only their replacement waits.
 */

import { randomBytes } from 'node:crypto';
import { cutText } from '#src/base/text/cut-text.ts';
import type { KernelLog } from '../processes/host/zygote-process.ts';
import { machinesWanted, type NodeBounds, RecentMost } from './demand.ts';
import type { KernelNodes, NodeState } from './kernel-nodes.ts';
import type { RayJob, RayJobs } from './ray-jobs.ts';

const COMMAND = 'exec troupe node join --exit-when-lost';
const RESOURCES = { troupe_host: 1 };
const TURN_MS = 2000;
/** A machine that is not needed is given back after this time. */
const KEEP_MS = 5 * 60_000;
/** An invitation works for 15 minutes. A job that has not begun by then is replaced. */
const INVITED_MS = 14 * 60_000;
/** Ray needs some 20 seconds for a job on a machine that it has. */
const SLOW_MS = 60_000;
const MAX_PAUSE_MS = 60_000;
/** The ended jobs that Ray keeps, for their logs. */
const MAX_ENDED_JOBS = 10;
const STOP_MS = 2000;

export interface RayNodesOptions extends NodeBounds {
  readonly jobs: Pick<RayJobs, 'submit' | 'find' | 'list' | 'stop' | 'delete'>;
  readonly nodes: Pick<KernelNodes, 'waiting' | 'invite' | 'list' | 'drain' | 'remove' | 'watch'>;
  /** The address at which nodes reach this server. */
  readonly address: string;
  /**
   * Distinguishes the jobs of this server from jobs of other servers. The text is the same after a restart.
   */
  readonly serverId: string;
  readonly log: KernelLog;
  /** For tests. */
  readonly times?: { readonly turnMs: number; readonly keepMs: number; readonly pauseMs: number };
}

/** A job, and the node that it becomes. */
interface Machine {
  readonly name: string;
  readonly jobId: string;
  readonly postedAt: number;
  hasJoined: boolean;
  /** Whether this engine has drained the node, because the node is not needed. */
  isLeaving: boolean;
}

export class RayNodes implements AsyncDisposable {
  readonly #options: RayNodesOptions;
  readonly #prefix: string;
  readonly #most: RecentMost;
  readonly #machines = new Map<string, Machine>();
  /** Jobs that Ray must still be told to stop. */
  readonly #stopping = new Set<string>();
  readonly #endedJobs: string[] = [];
  #capacity = Infinity;
  #problem: string | null = null;
  /** Why Ray could not be asked, in consecutive turns. */
  #failedTurns = 0;
  /** Jobs that have ended before their nodes joined, one after the other. */
  #failedJobs = 0;
  #jobProblem: string | null = null;
  #mayPostAt = 0;
  #hasCleared = false;
  #timer: NodeJS.Timeout | undefined;
  #turn: Promise<void> | undefined;
  #isAskedAgain = false;
  #isEnded = false;

  constructor(options: RayNodesOptions) {
    this.#options = options;
    this.#prefix = `troupe-${options.serverId}-`;
    this.#most = new RecentMost(options.times?.keepMs ?? KEEP_MS);
    options.nodes.watch(() => {
      this.#noteJoined(); // at once, because a node may be lost before the next turn
      if (this.#failedTurns === 0) this.#begin();
    });
    this.#begin();
  }

  /** Why there are fewer nodes than wanted; null when nothing is wrong. */
  get problem(): string | null {
    return this.#problem;
  }

  /** Ends jobs that wait for a machine. Nodes end by themselves, because they lose the server. */
  async [Symbol.asyncDispose](): Promise<void> {
    this.#isEnded = true;
    clearTimeout(this.#timer);
    let late: NodeJS.Timeout | undefined;
    const patience = new Promise<void>((resolve) => {
      late = setTimeout(resolve, STOP_MS);
    });
    await Promise.race([this.#stopStarting(), patience]); // the next start ends the jobs that are left
    clearTimeout(late);
  }

  async #stopStarting(): Promise<void> {
    await this.#turn; // the turn may post a job
    const starting = [...this.#machines.values()].filter(({ hasJoined }) => !hasJoined);
    await Promise.allSettled(starting.map(({ jobId }) => this.#options.jobs.stop(jobId)));
  }

  /** Begins a turn now, or after the end of the present turn. */
  #begin(): void {
    if (this.#isEnded) return;
    if (this.#turn !== undefined) {
      this.#isAskedAgain = true;
      return;
    }
    clearTimeout(this.#timer);
    this.#isAskedAgain = false;
    this.#turn = this.#takeTurn().finally(() => {
      this.#turn = undefined;
      if (this.#isEnded) return;
      const turnMs = this.#options.times?.turnMs ?? TURN_MS;
      const pauseMs = this.#failedTurns === 0 ? turnMs : this.#pause(this.#failedTurns);
      this.#timer = setTimeout(() => this.#begin(), pauseMs).unref();
      if (this.#isAskedAgain && this.#failedTurns === 0) this.#begin();
    });
  }

  #pause(failures: number): number {
    return Math.min(
      MAX_PAUSE_MS,
      (this.#options.times?.pauseMs ?? TURN_MS) * 2 ** Math.min(failures - 1, 10),
    );
  }

  async #takeTurn(): Promise<void> {
    try {
      await this.#clearEarlierJobs();
      for (const machine of [...this.#machines.values()]) await this.#look(machine);
      await this.#adjust();
      await this.#stopJobs();
      this.#failedTurns = 0;
      this.#report(this.#jobProblem ?? this.#slowness());
    } catch (error) {
      this.#failedTurns++;
      this.#report(error instanceof Error ? error.message : String(error));
    }
  }

  /** Ends the jobs of this server's earlier process: nobody waits for their nodes. */
  async #clearEarlierJobs(): Promise<void> {
    if (this.#hasCleared) return;
    const { jobs } = this.#options;
    for (const { id, status } of await jobs.list(this.#prefix))
      await (hasEnded(status) ? jobs.delete(id) : jobs.stop(id));
    this.#hasCleared = true;
  }

  #stateOf({ name }: Machine): NodeState | undefined {
    return this.#options.nodes.list().find((node) => node.name === name && node.state !== 'away');
  }

  #noteJoined(): void {
    for (const machine of this.#machines.values()) {
      const state = machine.hasJoined ? undefined : this.#stateOf(machine);
      if (state === undefined) continue;
      machine.hasJoined = true;
      this.#failedJobs = 0;
      this.#jobProblem = null;
      this.#capacity = state.offer?.capacity ?? this.#capacity;
    }
  }

  /** Compares a machine with its node, or with its job while there is no node. */
  async #look(machine: Machine): Promise<void> {
    const { jobs, log } = this.#options;
    if (this.#stateOf(machine) !== undefined) return;
    if (machine.hasJoined) {
      // The node is lost. Its job may hang on a machine that is cut off, and would occupy the machine when it comes back.
      this.#end(machine);
      return;
    }
    const refusal = this.#options.nodes.list().find(({ name }) => name === machine.name)?.problem;
    const job = await jobs.find(machine.jobId);
    if (machine.hasJoined) return; // meanwhile
    if (job !== undefined && !hasEnded(job.status)) {
      if (performance.now() - machine.postedAt > INVITED_MS) this.#end(machine);
      return;
    }
    this.#machines.delete(machine.name);
    this.#options.nodes.remove(machine.name);
    if (job === undefined) return; // the request never arrived, or an operator has deleted the job
    this.#failedJobs++;
    this.#mayPostAt = performance.now() + this.#pause(this.#failedJobs);
    this.#jobProblem = `A kernel node could not start on Ray: ${refusal ?? lastLine(job)} (job ${job.id})`;
    log.warn({ job: job.id, status: job.status }, 'a Ray job ended before its node has joined');
    await this.#noteEnded(job.id);
  }

  /** Posts jobs that are missing, and ends machines that are not needed. */
  async #adjust(): Promise<void> {
    const { nodes, min, max } = this.#options;
    const machines = [...this.#machines.values()];
    const states = new Map(nodes.list().map((node) => [node.name, node]));
    const live = machines.reduce((sum, { name }) => sum + (states.get(name)?.kernels ?? 0), 0);
    const usable = machines.filter(({ name }) => states.get(name)?.isDraining !== true);
    const starting = usable.filter(({ hasJoined }) => !hasJoined);
    const now = performance.now();
    const wanted = machinesWanted(
      {
        live,
        waiting: nodes.waiting,
        capacity: this.#capacity,
        usable: usable.length,
        starting: starting.length,
      },
      { min, max },
    );
    const target = this.#most.note(wanted, now);
    let missing = wanted - usable.length;
    for (const machine of machines.filter(({ isLeaving }) => isLeaving)) {
      if (missing <= 0) break;
      machine.isLeaving = false;
      if (nodes.drain(machine.name, false)) missing--;
    }
    const mayPost = () => !this.#isEnded && this.#machines.size < max && now >= this.#mayPostAt;
    for (; missing > 0 && mayPost(); missing--) {
      await this.#post();
      if (this.#failedJobs > 0) this.#mayPostAt = now + this.#pause(this.#failedJobs); // one at a time
    }
    const surplus = usable.length - Math.max(target, wanted);
    const kernelsOf = ({ name }: Machine) => states.get(name)?.kernels ?? -1; // starting nodes come first
    const emptiest = usable.toSorted((one, other) => kernelsOf(one) - kernelsOf(other));
    for (const machine of emptiest.slice(0, Math.max(0, surplus))) {
      if (!machine.hasJoined) this.#end(machine);
      else machine.isLeaving = nodes.drain(machine.name, true);
    }
    for (const machine of this.#machines.values()) {
      const state = this.#stateOf(machine);
      if (state?.isDraining === true && state.kernels === 0) this.#end(machine);
    }
  }

  async #post(): Promise<void> {
    const { jobs, nodes, address, log } = this.#options;
    const id = randomBytes(4).toString('hex');
    const machine = {
      name: `ray-${id}`,
      jobId: `${this.#prefix}${id}`,
      postedAt: performance.now(),
      hasJoined: false,
      isLeaving: false,
    };
    const { code, port } = nodes.invite(machine.name);
    const host = address.includes(':') ? `[${address}]` : address;
    // The job is noted before Ray has answered, because a job may run although the answer is lost.
    this.#machines.set(machine.name, machine);
    await jobs.submit({
      id: machine.jobId,
      command: COMMAND,
      env: { TROUPE_NODE_INVITATION: `${host}:${port}#${code}` },
      resources: RESOURCES,
    });
    log.info({ job: machine.jobId, node: machine.name }, 'a kernel node is wanted from Ray');
  }

  /** Ends a machine that has no kernels, or whose node is lost. */
  #end({ name, jobId }: Machine): void {
    const { nodes, log } = this.#options;
    this.#machines.delete(name);
    nodes.remove(name);
    this.#stopping.add(jobId);
    log.info({ job: jobId, node: name }, 'a kernel node of Ray ends');
  }

  async #stopJobs(): Promise<void> {
    for (const jobId of this.#stopping) {
      await this.#options.jobs.stop(jobId);
      this.#stopping.delete(jobId);
      await this.#noteEnded(jobId);
    }
  }

  async #noteEnded(jobId: string): Promise<void> {
    this.#endedJobs.push(jobId);
    const oldest = this.#endedJobs.length > MAX_ENDED_JOBS ? this.#endedJobs.shift() : undefined;
    // Ray refuses while the job is still ending; the next start of the server deletes it then.
    if (oldest !== undefined) await this.#options.jobs.delete(oldest).catch(() => undefined);
  }

  #slowness(): string | null {
    const now = performance.now();
    const slow = [...this.#machines.values()].filter((one) => !one.hasJoined && now - one.postedAt > SLOW_MS);
    if (slow.length === 0) return null;
    return `Ray has not started ${slow.length === 1 ? 'a kernel node' : `${slow.length} kernel nodes`} yet: it has no free machine with the resource troupe_host.`;
  }

  #report(problem: string | null): void {
    if (problem === this.#problem) return;
    this.#problem = problem;
    if (problem === null) this.#options.log.info({}, 'Ray starts kernel nodes again');
    else this.#options.log.warn({ reason: problem }, 'Ray starts no kernel nodes');
  }
}

function hasEnded(status: RayJob['status']): boolean {
  return status !== 'PENDING' && status !== 'RUNNING';
}

/** Returns the last line of the log of a job that has failed. */
function lastLine({ message, status }: RayJob): string {
  const line = message.trim().split('\n').at(-1) ?? '';
  return line === '' ? `it is ${status}` : cutText(line, 0, 300);
}
