import { setTimeout as sleep } from 'node:timers/promises';
import type { Api } from '../api.ts';
import { Tenant, type TenantReport } from '../load/tenant.ts';
import { atLeast, atMost, type Measure, spread, spreadOf } from '../measure.ts';
import { anonymousBytes, mainThreadMs, nameOf, processTree, proportionalBytes } from '../processes.ts';
import type { Scenario, Stage } from '../scenario.ts';
import { expected, type Wire } from '../wire.ts';

const MIB = 1024 * 1024;
const SECONDS = 600;
const ALONE_SECONDS = 120;
const NOTEBOOKS = 50;
/** The steps between two requests of the measured tenant. */
const GET_EVERY_MS = 50;
const LIST_EVERY_MS = 100;
const RUN_EVERY_MS = 500;
/** The server closes a connection that was silent for ten seconds. */
const FRESH_MS = 5_000;
const SAMPLE_EVERY_MS = 2_000;
/** A p99 during the work of the other tenant misses the target if it is more than this many times the p99 without it. */
const MAX_FACTOR = 5;
/** The default limits of the memory of one kernel, and of all unread events together. */
const [KERNEL_MIB, STREAMS_MIB] = [4096, 256];
/** The memory of a busy server, without its unread events. */
const SERVER_MIB = 512;

/** The names of processes that are not kernels. */
const NOT_KERNELS = /^(node|MainThread)/;

/** The latencies of one tenant while another one does everything that it may. */
export const tenants: Scenario = {
  name: 'tenants',
  title:
    'The requests of one tenant, alone and beside another one that computes, prints, reads, stalls, uploads, converts and signs in as much as it may',
  limitS: 3_600,
  async run(stage) {
    const seconds = stage.seconds(SECONDS, 10);
    const { api, pid } = await stage.server({ environment: { TROUPE_LOG_LEVEL: 'error' } });
    const calm = await Neighbour.open(stage, api);
    await calm.during(stage.quick ? 2_000 : 10_000); // lets V8 compile the code that is used
    const alone = await calm.during(Math.min(ALONE_SECONDS, seconds) * 1000);
    const tenant = await Tenant.open(api);
    stage.after(() => tenant.end());
    await sleep(stage.quick ? 1_000 : 5_000);
    const memory = new MemoryWatch(pid);
    const before = await tenant.report();
    const beganAt = performance.now();
    const cpuBefore = mainThreadMs(pid);
    const beside = await calm.during(seconds * 1000);
    const share = (mainThreadMs(pid) - cpuBefore) / (performance.now() - beganAt);
    memory.end();
    const report = await tenant.report();
    await tenant.end();
    return [
      ...compared(alone, beside),
      atMost('processor time of the main thread meanwhile', share * 1000, 'ms/s'),
      ...memory.measures(),
      ...done(before, report, seconds),
    ];
  },
};

type Kind = 'GET of a notebook' | 'list of notebooks' | 'list of runs' | 'run of a cell';
type Latencies = Readonly<Record<Kind, number[]>>;

function compared(alone: Latencies, beside: Latencies): readonly Measure[] {
  return (Object.keys(alone) as Kind[]).flatMap((kind) => {
    const factor = spreadOf(beside[kind]).p99 / spreadOf(alone[kind]).p99;
    return [
      spread(`${kind}, alone`, alone[kind]),
      spread(`${kind}, beside the other tenant`, beside[kind]),
      atMost(`${kind}, p99 beside the other tenant to p99 alone`, factor, '×', MAX_FACTOR),
    ];
  });
}

function done(before: TenantReport, after: TenantReport, seconds: number): readonly Measure[] {
  const all = Object.entries(after.counts).map(([what, count]) =>
    atLeast(`the other tenant, ${what}`, (count - (before.counts[what] ?? 0)) / seconds, '/s'),
  );
  return [...all, atLeast('the other tenant, refused', (after.refused - before.refused) / seconds, '/s')];
}

/** The measured tenant. Each kind of its requests has a rate of its own. */
class Neighbour {
  readonly #api: Api;
  readonly #sessionId: string;
  /** Connections without a request, each with the time of its last one. */
  #idle: { readonly wire: Wire; readonly usedAt: number }[] = [];

  private constructor(api: Api, sessionId: string) {
    this.#api = api;
    this.#sessionId = sessionId;
  }

  static async open(stage: Stage, api: Api): Promise<Neighbour> {
    for (let i = 0; i < NOTEBOOKS; i++) await api.notebook([`x = ${i}`]);
    const { id } = await api.session(['1 + 1']);
    const neighbour = new Neighbour(api, id);
    stage.after(() => neighbour.#leave());
    return neighbour;
  }

  /**
   * Sends requests at their rates, even when earlier ones were not answered. Only runs wait: the next one begins when
   * the last one has ended.
   */
  async during(forMs: number): Promise<Latencies> {
    this.#leave(); // the server closes connections that were silent
    const latencies: Latencies = {
      'GET of a notebook': [],
      'list of notebooks': [],
      'list of runs': [],
      'run of a cell': [],
    };
    const ask = (kind: Kind, everyMs: number, path: string) => {
      const request = this.#api.bytes('GET', `/api/v3${path}`);
      return atRate(everyMs, forMs, () =>
        this.#timed(latencies[kind], async (wire) => expected(await wire.send(request), 200)),
      );
    };
    await Promise.all([
      ask('GET of a notebook', GET_EVERY_MS, `/notebooks/${this.#sessionId}`),
      ask('list of notebooks', LIST_EVERY_MS, '/notebooks?limit=20'),
      ask('list of runs', LIST_EVERY_MS, '/runs?limit=20&order=desc'),
      this.#runs(forMs, latencies['run of a cell']),
    ]);
    return latencies;
  }

  async #runs(forMs: number, tookMs: number[]): Promise<void> {
    const endsAt = performance.now() + forMs;
    while (performance.now() < endsAt) {
      const nextAt = performance.now() + RUN_EVERY_MS;
      await this.#timed(tookMs, (wire) => this.#run(wire));
      await sleep(Math.max(0, nextAt - performance.now()));
    }
  }

  async #run(wire: Wire): Promise<void> {
    const begun = expected(await wire.send(this.#api.executeBytes(this.#sessionId, 'c0')), 202);
    const { runId } = JSON.parse(begun.body.toString('utf8')) as { readonly runId: string };
    const ended = expected(await wire.send(this.#api.bytes('GET', `/api/v3/runs/${runId}?wait=60`)), 200);
    if (!ended.body.includes('"status":"completed"')) throw new Error(ended.body.toString('utf8'));
  }

  /** Carries out a request on a connection of its own, and adds its time. */
  async #timed(tookMs: number[], act: (wire: Wire) => Promise<unknown>): Promise<void> {
    const idle = this.#idle.pop();
    const isFresh = idle !== undefined && performance.now() - idle.usedAt < FRESH_MS;
    const wire = isFresh ? idle.wire : await this.#api.wire();
    const sentAt = performance.now();
    await act(wire);
    tookMs.push(performance.now() - sentAt);
    this.#idle.push({ wire, usedAt: performance.now() });
  }

  #leave(): void {
    for (const { wire } of this.#idle) wire.close();
    this.#idle = [];
  }
}

/** Calls a function at a rate for a while. Resolves when all calls have ended. */
async function atRate(everyMs: number, forMs: number, act: () => Promise<void>): Promise<void> {
  const beganAt = performance.now();
  const calls: Promise<void>[] = [];
  for (let dueAt = beganAt; dueAt < beganAt + forMs; dueAt += everyMs) {
    const waitMs = dueAt - performance.now();
    if (waitMs > 0) await sleep(waitMs);
    const call = act();
    call.catch(() => undefined); // `all` below has the error
    calls.push(call);
  }
  await Promise.all(calls);
}

/** The most memory of the server, and of the largest kernel with its children. */
class MemoryWatch {
  readonly #timer: NodeJS.Timeout;
  readonly #pid: number;
  #server = 0;
  #largest = 0;
  #all = 0;

  constructor(pid: number) {
    this.#pid = pid;
    this.#timer = setInterval(() => this.#look(), SAMPLE_EVERY_MS);
  }

  #look(): void {
    const pids = processTree(this.#pid);
    this.#server = Math.max(this.#server, anonymousBytes(this.#pid));
    this.#all = Math.max(this.#all, proportionalBytes(pids));
    for (const one of pids)
      if (one !== this.#pid && !NOT_KERNELS.test(nameOf(one)))
        this.#largest = Math.max(this.#largest, anonymousBytes(one));
  }

  end(): void {
    clearInterval(this.#timer);
    this.#look();
  }

  measures(): readonly Measure[] {
    return [
      atMost('anonymous memory of the server, most', this.#server / MIB, 'MiB', SERVER_MIB + STREAMS_MIB),
      atMost('anonymous memory of the largest kernel, most', this.#largest / MIB, 'MiB', KERNEL_MIB),
      atMost('memory of all processes (Pss), most', this.#all / MIB, 'MiB'),
    ];
  }
}
