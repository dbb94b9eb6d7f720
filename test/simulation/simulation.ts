/** One seed: a server, its users, what befalls them, and the judgement. */
import { existsSync, mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { RunStatus } from '#src/contract/wire/run.ts';
import { Ledger, type PrintedRun } from './judges/ledger.ts';
import { LoneServer } from './lone-server.ts';
import type { Scenario } from './scenarios/list.ts';
import { Stage } from './scenarios/stage.ts';
import { SimulatedCluster } from './simulated-cluster.ts';
import { SimulatedNodes } from './simulated-nodes.ts';
import type { Moments, SimulatedServer } from './simulated-server.ts';
import { closeAll } from './stand-ins/fs.ts';
import { type Answer, isAnswer, SimulatedClient } from './users/client.ts';
import { Hooker } from './users/hooker.ts';
import { Scheduler } from './users/scheduler.ts';
import type { SimulatedUser } from './users/simulated-user.ts';
import { Talker } from './users/talker.ts';
import { User } from './users/user.ts';
import { real } from './world/real.ts';
import { enter, textOf, World } from './world/world.ts';

export interface SimulationOptions {
  /** Simulated seconds during which users act. */
  readonly seconds: number;
  readonly users?: number;
  /** How many users talk with agents; drawn by default. */
  readonly talkers?: number;
  /** How many users make jobs; drawn by default. */
  readonly schedulers?: number;
  /** How many workers the server has; a server of one process by default. */
  readonly workers?: number;
  /** On how many nodes its kernels run; on the machine of the server by default. */
  readonly nodes?: number;
  /** Whether the server is killed, drained and restarted. */
  readonly crashes?: boolean;
  /** How many users make hooks; drawn by default. */
  readonly hookers?: number;
  /** The server is killed again and again, each time around a moment of a job or a hook, and has no other misfortune. */
  readonly killsAround?: Moments | undefined;
  readonly keepsTrace?: boolean;
  /** A scenario, which takes the place of users and misfortunes. */
  readonly scenario?: Scenario;
  /** Acts that each user leaves out, by their numbers: from the first one of a part to before its second. */
  readonly skippedActs?: readonly (readonly [number, number])[];
}

export interface SimulationReport {
  readonly seed: number;
  readonly digest: string;
  readonly problems: readonly string[];
  readonly counts: ReadonlyMap<string, number>;
  readonly turns: number;
  readonly realWaits: number;
  readonly simulatedMs: number;
  readonly realMs: number;
  readonly lines: readonly string[];
}

const DEFAULT_USERS = 3;
/** Where files need no disk: the server flushes those that it writes beside its store. */
const IN_MEMORY = '/dev/shm';
const SETTLE_ROUNDS = 60;
const SETTLE_PAUSE_MS = 250;
/** Why the server ends, and how often. */
const KILL = 0.6;
const DRAIN = 0.8;
const MAX_DOWN_MS = 500;
const MAX_BETWEEN_KILLS_MS = 300;
const MAX_TROUBLE_MS = 3000;
const TROUBLE_EVERY_MS = 3000;
const MAX_WAIT_MS = 500;
/** How long the misfortunes of workers wait at most until all workers serve again. */
const MAX_RETURN_MS = 4000;
const CALM_MS = 100;
/** By how much the clock is set forward or back at once. */
const CLOCK_STEPS_S = [1, 5, 40, 150, 150, 3600, 5 * 3600];
/** How far the clock is from the right time at most. */
const MAX_AHEAD_MS = 6 * 3_600_000;

/** Simulates one seed from its beginning to its judgement. One at a time in a process. */
export async function simulate(seed: number, options: SimulationOptions): Promise<SimulationReport> {
  const world = new World(seed, options.keepsTrace);
  enter(world);
  const folder = mkdtempSync(join(existsSync(IN_MEMORY) ? IN_MEMORY : tmpdir(), 'troupe-simulation-'));
  const startedAt = real.now();
  try {
    await world.run(() => new Simulation(world, folder, options).perform());
  } catch (error) {
    world.problem(textOf(error));
  } finally {
    closeAll(world);
    rmSync(folder, { recursive: true, force: true });
  }
  return {
    seed,
    digest: world.trace.digest,
    problems: world.problems,
    counts: world.counts,
    turns: world.turns,
    realWaits: world.realWaits,
    simulatedMs: world.nowMs,
    realMs: real.now() - startedAt,
    lines: world.trace.lines ?? [],
  };
}

interface ListedRun {
  readonly id: string;
  readonly status: RunStatus;
  readonly stale?: boolean;
}

class Simulation {
  readonly #world: World;
  readonly #options: SimulationOptions;
  readonly #server: SimulatedServer;
  /** The same, if it has workers. */
  readonly #cluster: SimulatedCluster | undefined;
  /** The machines on which its kernels run, if there are any. */
  readonly #nodes: SimulatedNodes | undefined;
  readonly #client: SimulatedClient;
  readonly #ledger = new Ledger();
  readonly #users: SimulatedUser[] = [];
  #isOver = false;
  /** The kinds of moments that this life has. */
  #moments: readonly Moments[] = [];

  constructor(world: World, folder: string, options: SimulationOptions) {
    this.#world = world;
    this.#options = options;
    const { workers = 1, nodes = 0 } = options;
    this.#nodes = nodes > 0 ? new SimulatedNodes(folder, nodes) : undefined;
    this.#cluster = workers > 1 ? new SimulatedCluster(folder, workers, {}, this.#nodes) : undefined;
    this.#server = this.#cluster ?? new LoneServer(folder, this.#nodes);
    this.#client = new SimulatedClient(this.#server);
  }

  async perform(): Promise<void> {
    const { scenario } = this.#options;
    if (scenario !== undefined) return this.#play(scenario);
    const { users = DEFAULT_USERS, talkers = this.#world.nature.talkers } = this.#options;
    const { schedulers = this.#world.nature.schedulers, hookers = this.#world.nature.hookers } =
      this.#options;
    const { seconds, crashes = true, killsAround, skippedActs = [] } = this.#options;
    const skips = (act: number) => skippedActs.some(([first, end]) => first <= act && act < end);
    await this.#server.start();
    this.#nodes?.start();
    const notebookUsers: User[] = [];
    for (let at = 0; at < users; at++)
      notebookUsers.push(new User(this.#client, this.#ledger, `u${at}`, () => notebookUsers, skips));
    this.#users.push(...notebookUsers);
    for (let at = 0; at < talkers; at++)
      this.#users.push(
        new Talker(this.#client, this.#ledger, `u${users + at}`, () =>
          notebookUsers.flatMap(({ notebook, environment }) =>
            notebook === undefined || environment === undefined ? [] : { notebook, environment },
          ),
        ),
      );
    this.#moments = [
      ...(schedulers > 0 ? (['jobs'] as const) : []),
      ...(hookers > 0 ? (['hooks'] as const) : []),
    ];
    for (let at = 0; at < schedulers; at++)
      this.#users.push(new Scheduler(this.#client, `u${users + talkers + at}`, killsAround === 'jobs'));
    for (let at = 0; at < hookers; at++)
      this.#users.push(
        new Hooker(this.#client, `u${users + talkers + schedulers + at}`, users + talkers === 0),
      );
    const lives = this.#users.map((user) => user.live(() => this.#isOver));
    const untilMs = this.#world.nowMs + seconds * 1000;
    await Promise.all([
      ...(killsAround !== undefined
        ? [this.#killAround(killsAround, untilMs)]
        : crashes
          ? [this.#disturb(untilMs), this.#disturbWorkers(untilMs)]
          : []),
      ...(crashes ? [this.#disturbNodes(untilMs)] : []),
      ...(schedulers > 0 ? [this.#setClock(untilMs)] : []),
    ]);
    await this.#world.sleep(untilMs - this.#world.nowMs);
    this.#isOver = true;
    this.#world.isDisturbed = false;
    this.#nodes?.calm();
    await Promise.all(lives);
    await this.#settle();
    await this.#server.drain();
    await this.#nodes?.judgeEnd();
  }

  /** Performs a scenario, with a server that nothing disturbs. */
  async #play({ perform }: Scenario): Promise<void> {
    this.#world.isDisturbed = false;
    await this.#server.start();
    this.#nodes?.start();
    const stage = new Stage(this.#world, this.#server);
    await perform(stage);
    stage.end();
    await this.#server.drain();
  }

  /** Kills and restarts the server, or one of its kernels, now and then. */
  async #disturb(untilMs: number): Promise<void> {
    const { ofFate, nature } = this.#world;
    for (;;) {
      const everyMs = nature.troubles ? Math.min(nature.crashEveryMs, TROUBLE_EVERY_MS) : nature.crashEveryMs;
      const pauseMs = -Math.log(1 - ofFate.next()) * everyMs;
      if (this.#world.nowMs + pauseMs > untilMs) return;
      await this.#world.sleep(pauseMs);
      const dice = ofFate.next();
      if (nature.troubles && ofFate.is(0.5)) {
        await this.#server.troubleDisk(ofFate.next() * MAX_TROUBLE_MS);
        continue;
      }
      if (dice > DRAIN) {
        if (ofFate.is(0.7)) this.#server.killKernel();
        else this.#server.killHost();
        continue;
      }
      this.#cluster?.aim('server');
      await (dice > KILL ? this.#server.drain() : this.#kill());
      if (this.#server.up !== undefined) continue; // only a worker has ended
      await this.#world.sleep(ofFate.next() * MAX_DOWN_MS);
      await this.#server.start();
      await this.#inspect();
    }
  }

  /** Kills the server, or one of its workers, around the moments of jobs or hooks. */
  async #killAround(kind: Moments, untilMs: number): Promise<void> {
    const { ofFate } = this.#world;
    while (this.#world.nowMs < untilMs) {
      await this.#world.sleep(ofFate.next() * MAX_BETWEEN_KILLS_MS);
      this.#cluster?.aim(ofFate.is(0.5) ? 'worker' : 'server');
      await this.#server.killAround(kind, Math.max(0, untilMs - this.#world.nowMs));
      if (this.#server.up === undefined) {
        await this.#world.sleep(ofFate.next() * MAX_DOWN_MS);
        await this.#server.start();
      } else await this.#cluster?.complete(MAX_RETURN_MS);
      if (ofFate.is(0.2)) await this.#inspect();
    }
  }

  /** Kills single workers, or replaces all of them one after the other, now and then. */
  async #disturbWorkers(untilMs: number): Promise<void> {
    const cluster = this.#cluster;
    if (cluster === undefined) return;
    const { ofFate, nature } = this.#world;
    for (;;) {
      const pauseMs = -Math.log(1 - ofFate.next()) * nature.misfortuneEveryMs;
      if (this.#world.nowMs + pauseMs > untilMs) return;
      await this.#world.sleep(pauseMs);
      if (cluster.up === undefined) continue;
      cluster.aim('worker');
      if (ofFate.is(0.25)) cluster.reload();
      else if (ofFate.is(0.3)) await cluster.killAtCommit(MAX_WAIT_MS);
      else if (ofFate.is(0.4)) await cluster.killAtReply(MAX_WAIT_MS);
      else if (ofFate.is(0.5)) await cluster.killAtPoint(MAX_WAIT_MS);
      else cluster.killWorker();
      if (ofFate.is(0.3)) await cluster.complete(MAX_RETURN_MS);
      if (ofFate.is(0.4) && cluster.up !== undefined) await this.#inspect();
    }
  }

  /** Nodes are killed, cut off, stopped or silent now and then. */
  async #disturbNodes(untilMs: number): Promise<void> {
    const nodes = this.#nodes;
    if (nodes === undefined) return;
    const { ofNodes, nature } = this.#world;
    for (;;) {
      const pauseMs = -Math.log(1 - ofNodes.next()) * nature.nodeMisfortuneEveryMs;
      if (this.#world.nowMs + pauseMs > untilMs) return;
      await this.#world.sleep(pauseMs);
      nodes.disturb();
    }
  }

  /** Sets the clock of the machine forward and back now and then. */
  async #setClock(untilMs: number): Promise<void> {
    const { clock, ofFate, nature } = this.#world;
    const random = ofFate.fork();
    for (;;) {
      const pauseMs = -Math.log(1 - random.next()) * nature.setClockEveryMs;
      if (this.#world.nowMs + pauseMs > untilMs) return;
      await this.#world.sleep(pauseMs);
      const ms = random.pick(CLOCK_STEPS_S) * (random.is(0.5) ? 1000 : -1000);
      if (Math.abs(clock.aheadMs + ms) > MAX_AHEAD_MS) continue;
      this.#world.count(ms > 0 ? 'clocks set forward' : 'clocks set back');
      this.#world.trace.add('clock', `is set by ${ms / 1000} s`);
      clock.set(ms);
    }
  }

  /** Kills the server, mostly where it matters. */
  async #kill(): Promise<void> {
    const { ofFate, nature } = this.#world;
    if (nature.troubles && ofFate.is(0.4)) await this.#server.breakDisk(MAX_WAIT_MS);
    else if (this.#moments.length > 0 && ofFate.is(0.4)) {
      const kind = this.#moments.length > 1 ? ofFate.pick(this.#moments) : this.#moments[0]!;
      await this.#server.killAround(kind, MAX_WAIT_MS);
    } else if (ofFate.is(0.3)) await this.#server.killAtCommit(MAX_WAIT_MS);
    else if (ofFate.is(0.4)) await this.#server.killAtReply(MAX_WAIT_MS);
    else if (ofFate.is(0.6)) await this.#server.killAtPoint(MAX_WAIT_MS);
    else this.#server.kill();
  }

  /** Right after a start, while nobody acts: nothing that was acknowledged is missing, and all ways to a run say the same of it. */
  async #inspect(): Promise<void> {
    let goOn: () => void = () => undefined;
    const calm = new Promise<void>((resolve) => {
      goOn = resolve;
    });
    for (const user of this.#users) user.waitFor(calm);
    await this.#world.sleep(CALM_MS); // for requests that were sent before
    for (const user of this.#users) {
      await user.inspect();
      await this.#inspectRunsOf(user);
    }
    goOn();
  }

  async #inspectRunsOf(user: SimulatedUser): Promise<void> {
    if (user.runsPath === undefined) return;
    const acknowledged = [...user.acknowledged];
    const fromMs = this.#world.nowMs;
    const listed = await this.#runsOf(user);
    if (listed === undefined) return;
    const span = { from: fromMs, to: this.#world.nowMs };
    for (const { id: runId, status, stale } of listed)
      this.#ledger.history.push({ kind: 'run-read', runId, status, isStale: stale === true, ...span });
    for (const { id, status } of listed) {
      const one = await this.#client.get(`/api/v3/runs/${id}`);
      if (isAnswer(one) && one.status === 200 && status !== 'running' && one.json.status !== status)
        this.#world.problem(`the list says ${status} and the record ${String(one.json.status)} of ${id}`);
    }
    const ids = new Set(listed.map(({ id }) => id));
    for (const id of acknowledged)
      if (user.acknowledged.has(id) && !ids.has(id))
        this.#world.problem(`the run ${id} was acknowledged and is missing after a restart`);
  }

  /** Returns all runs of a user's session; undefined when they cannot be listed. */
  async #runsOf({ runsPath }: SimulatedUser): Promise<ListedRun[] | undefined> {
    const runs: ListedRun[] = [];
    for (let cursor = ''; ; ) {
      const after = cursor === '' ? '' : `&after=${encodeURIComponent(cursor)}`;
      const page = await this.#client.get(runsPath!, `limit=100${after}`);
      if (!isAnswer(page) || page.status !== 200) return undefined;
      runs.push(...(page.json.items as ListedRun[]));
      const { nextCursor } = page.json;
      if (typeof nextCursor !== 'string') return runs;
      cursor = nextCursor;
    }
  }

  /** Resolves with the record of a run. A worker that is replaced may leave requests unanswered, so it is read again. */
  async #recordOf(runId: string): Promise<Answer | undefined> {
    for (let round = 0; round < SETTLE_ROUNDS; round++) {
      const one = await this.#client.get(`/api/v3/runs/${runId}`);
      if (isAnswer(one)) return one;
      await this.#world.sleep(SETTLE_PAUSE_MS);
    }
    return undefined;
  }

  /** Ends all runs and judges. */
  async #settle(): Promise<void> {
    const printed: PrintedRun[] = [];
    for (const user of this.#users) {
      if (user.runsPath !== undefined) printed.push(...(await this.#settleUser(user)));
      const wrong = await user.useOnceMore();
      if (wrong !== undefined) this.#world.problem(wrong);
      user.stopFollowing();
    }
    await this.#world.sleep(SETTLE_PAUSE_MS);
    await this.#nodes?.judgeKernels(() => this.#countOnNodes());
    this.#judgeKernels();
    this.#ledger.judge(printed);
  }

  /** Resolves with the number of kernels that the server has on nodes. */
  async #countOnNodes(): Promise<number | undefined> {
    const answer = await this.#client.get('/api/v3/nodes');
    if (!isAnswer(answer) || answer.status !== 200) return undefined;
    const items = answer.json.items as readonly { readonly kernels: number }[];
    return items.reduce((sum, { kernels }) => sum + kernels, 0);
  }

  /** A kernel exists only as long as its session is open, and each user of a notebook has one session. */
  #judgeKernels(): void {
    const sessions = this.#users.filter((user) => user instanceof User).length;
    const { kernels } = this.#server;
    if (kernels.length > sessions)
      this.#world.problem(`${sessions} sessions have ${kernels.length} kernels that nobody ends`);
  }

  async #settleUser(user: SimulatedUser): Promise<PrintedRun[]> {
    let runs = await this.#runsOf(user);
    for (let round = 0; round < SETTLE_ROUNDS && runs?.some(({ status }) => status === 'running'); round++) {
      for (const { id, status } of runs)
        if (status === 'running') {
          this.#ledger.noteCancel(id);
          await this.#client.post(`/api/v3/runs/${id}/cancel`, {});
        }
      await this.#world.sleep(SETTLE_PAUSE_MS);
      runs = await this.#runsOf(user);
    }
    if (runs === undefined) {
      this.#world.problem(`the runs of ${user.name} cannot be listed`);
      return [];
    }
    const printed: PrintedRun[] = [];
    for (const { id, status, stale } of runs) {
      if (status === 'running') this.#world.problem(`the run ${id} does not end, though it was cancelled`);
      const one = await this.#recordOf(id);
      if (one === undefined) {
        this.#world.problem(`the record of the run ${id} cannot be read`);
        continue;
      }
      if (one.json.status !== status) {
        this.#world.problem(
          `the list says ${status} of ${id}, and the record is answered with ${JSON.stringify(one)}`,
        );
        continue;
      }
      const input = JSON.stringify(one.json.input);
      const token = /print\(\\"([kt]\w+)\\"\)|Please \w+ (p\w+)/.exec(input)?.slice(1).find(Boolean);
      const { code: failure } = (one.json.error ?? {}) as { readonly code?: string };
      const raises = /raise ValueError/.test(input);
      const tookMs = Date.parse(String(one.json.finishedAt)) - Date.parse(String(one.json.createdAt));
      printed.push({
        ...{ runId: id, status, token, failure, raises, tookMs },
        printed: textsOf(one.json.output, token),
      });
      const isStale = stale === true;
      this.#ledger.history.push({
        kind: 'final-run',
        session: user.sessionId!,
        runId: id,
        status,
        isStale,
        token,
      });
    }
    return printed;
  }
}

interface ShownPart {
  readonly console?: readonly { readonly channel: string; readonly data: string }[];
  readonly markdown?: string;
}

/** Returns the lines that the cells of a run have printed, and the tokens in the answer of a model. */
function textsOf(output: unknown, token: string | undefined): string[] {
  const { parts = [] } = (output ?? {}) as { parts?: readonly ShownPart[] };
  const answered = parts.flatMap(({ markdown }) => /^It is (\w+)\.$/.exec(markdown ?? '')?.[1] ?? []);
  if (answered.length > 0 || token?.startsWith('p') === true) return answered;
  return parts
    .flatMap((part) => part.console ?? [])
    .filter(({ channel }) => channel === 'stdout')
    .flatMap(({ data }) => data.split('\n').filter((line) => line !== ''));
}
