/** Real kernels for tests: one host, kernels whose messages and end can be waited for. */
import { existsSync, mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { KernelExit } from '#src/confined/processes/exit-classification.ts';
import { KernelHost } from '#src/confined/processes/host/kernel-host.ts';
import type { KernelHostOptions } from '#src/confined/processes/host/kernel-host-options.ts';
import type { HostHello } from '#src/confined/processes/host/zygote-process.ts';
import type { Kernel, KernelLaunch, KernelSink } from '#src/confined/processes/kernel/kernel.ts';
import type { BridgeDone, CellVerdict, KernelMessage } from '#src/confined/processes/kernel/messages.ts';
import { deferred } from '#test/support/deferred.ts';
import { hostOfLane } from '#test/support/lane-hosts.ts';

export const PYTHON = process.env.TROUPE_PYTHON ?? join(import.meta.dirname, '../../../.venv/bin/python');

export interface TestHost extends AsyncDisposable {
  readonly host: KernelHost;
  readonly hello: HostHello;
  readonly runDir: string;
  readonly work: string;
}

const silence = { info: () => {}, warn: () => {}, error: () => {} };

/** A started host with a run directory and a working directory of its own; disposing removes them. */
export async function startTestHost(options: Partial<KernelHostOptions> = {}): Promise<TestHost> {
  const folder = mkdtempSync(join(tmpdir(), 'troupe-kernel-'));
  const [runDir, work] = [join(folder, 'run'), join(folder, 'work')];
  mkdirSync(runDir, { mode: 0o700 });
  mkdirSync(work);
  // Kernels that need nothing special of their host share the host of the lane.
  const startZygote = Object.keys(options).length === 0 ? hostOfLane() : undefined;
  const host = new KernelHost({
    ...(startZygote && { startZygote }),
    python: PYTHON,
    runDir,
    preload: false,
    log: silence,
    hiddenPaths: [runDir],
    ...options,
  });
  const dispose = async () => {
    await host[Symbol.asyncDispose]();
    rmSync(folder, { recursive: true, force: true });
  };
  const hello = await host.start().catch(async (error: unknown) => {
    await dispose();
    throw error;
  });
  return { host, hello, runDir, work, [Symbol.asyncDispose]: dispose };
}

/** All results of one command; `done.cells` has the state of every cell. */
export class Outcome {
  readonly done: BridgeDone;
  readonly messages: readonly KernelMessage[];
  constructor(done: BridgeDone, messages: readonly KernelMessage[]) {
    this.done = done;
    this.messages = messages;
  }
  /** Cell ids in the order in which they began. */
  get ran(): string[] {
    return this.messages.flatMap((m) => (m.op === 'execution' && m.phase === 'running' ? [m.cellId] : []));
  }
  get statuses(): Record<string, string | null> {
    return Object.fromEntries([...this.done.cells].map(([cellId, { status }]) => [cellId, status]));
  }
  get stale(): string[] {
    return [...this.done.cells].flatMap(([cellId, { stale }]) => (stale ? [cellId] : []));
  }
  get stdout(): string {
    return consoleText(this.messages);
  }
}

function consoleText(messages: readonly KernelMessage[]): string {
  return messages
    .flatMap((m) => (m.op === 'cell-op' ? (m.console ?? []) : []))
    .flatMap(({ channel, data }) => (channel === 'stdout' && typeof data === 'string' ? [data] : []))
    .join('');
}

type Ready = Parameters<KernelSink['ready']>[0];

interface Watch {
  readonly matches: (message: KernelMessage) => boolean;
  readonly resolve: (message: KernelMessage) => void;
}

/** One kernel as a test sees it: all its messages, and its end. */
export class TestKernel {
  readonly kernel: Kernel;
  readonly messages: KernelMessage[] = [];
  /** The state of every cell. The end of a command has only the cells that may have changed. */
  readonly verdicts = new Map<string, CellVerdict>();
  readonly batches: number[] = [];
  readonly exits: KernelExit[] = [];
  readonly exited: Promise<KernelExit>;
  readonly ready: Promise<Ready>;
  readonly codes: Map<string, string>;
  #watches: Watch[] = [];

  constructor(
    { host, work }: TestHost,
    cells: Readonly<Record<string, string>>,
    more: Partial<KernelLaunch> = {},
  ) {
    this.codes = new Map(Object.entries(cells));
    const exited = deferred<KernelExit>();
    const ready = deferred<Ready>();
    for (const { promise } of [exited, ready]) promise.catch(() => {}); // tests need not wait for both
    const sink: KernelSink = {
      ready: ready.resolve,
      messages: (batch) => this.#hear(batch),
      exited: (exit) => {
        this.exits.push(exit);
        exited.resolve(exit);
        ready.reject(new Error(exit.message));
      },
    };
    this.exited = exited.promise;
    this.ready = ready.promise;
    this.kernel = host.startKernel(
      {
        id: 'k',
        cwd: work,
        env: {},
        cells: Object.entries(cells).map(([cellId, code]) => ({ cellId, code, config: {} })),
        appOptions: {},
        ...more,
      },
      sink,
    );
  }

  /** All text that the kernel's cells have printed on stdout. */
  get stdout(): string {
    return consoleText(this.messages);
  }

  /** Runs cells with their present code, or with the given code. */
  async run(cells: readonly string[] | Readonly<Record<string, string>>, fresh = false): Promise<Outcome> {
    if (!Array.isArray(cells)) for (const [id, code] of Object.entries(cells)) this.codes.set(id, code);
    const cellIds: string[] = Array.isArray(cells) ? cells : Object.keys(cells);
    return this.outcome(() =>
      this.kernel.execute({ cellIds, codes: cellIds.map((id) => this.codes.get(id) ?? ''), fresh }),
    );
  }

  /** Sends a command and waits for its end. Rejects when the kernel ends first. */
  async outcome(give: () => number): Promise<Outcome> {
    const from = this.messages.length;
    const seq = give();
    const done = await this.next((m) => m.op === 'bridge-done' && m.seq === seq);
    if (done.op !== 'bridge-done') throw new Error('unreachable');
    return new Outcome({ ...done, cells: new Map(this.verdicts) }, this.messages.slice(from));
  }

  /** The next message that matches; rejects when the kernel ends first. */
  async next(matches: (message: KernelMessage) => boolean): Promise<KernelMessage> {
    const found = new Promise<KernelMessage>((resolve) => this.#watches.push({ matches, resolve }));
    const end = this.exited.then((exit) => {
      throw new Error(`the kernel ended: ${exit.message}`);
    });
    return Promise.race([found, end]);
  }

  /** The next text on stdout that contains `text`. */
  printed(text: string): Promise<KernelMessage> {
    return this.next((m) => consoleText([m]).includes(text));
  }

  #hear(batch: readonly KernelMessage[]): void {
    this.batches.push(batch.length);
    for (const message of batch) {
      this.messages.push(message);
      if (message.op === 'bridge-done')
        for (const [cellId, verdict] of message.cells) this.verdicts.set(cellId, verdict);
      for (const watch of this.#watches.filter(({ matches }) => matches(message))) {
        this.#watches.splice(this.#watches.indexOf(watch), 1);
        watch.resolve(message);
      }
    }
  }
}

/** A kernel whose notebook is open. */
export async function openKernel(
  host: TestHost,
  cells: Readonly<Record<string, string>>,
  more: Partial<KernelLaunch> = {},
): Promise<TestKernel> {
  const kernel = new TestKernel(host, cells, more);
  await kernel.ready;
  return kernel;
}

/**
 * Whether this process exists. A zombie has ended and only waits to be reaped, so it does not
 * count.
 */
export function isAlive(pid: number): boolean {
  if (!existsSync(`/proc/${pid}`)) return false;
  return statOf(pid)?.state !== 'Z';
}

export function parentOf(pid: number): number {
  return statOf(pid)?.parent ?? 0;
}

/**
 * Returns all processes below this one, wherever in the tree and in whichever session or pid
 * namespace they are.
 */
export function descendantsOf(pid: number): number[] {
  const everyone = readdirSync('/proc')
    .filter((name) => /^\d+$/.test(name))
    .map(Number);
  const children = everyone.filter((one) => parentOf(one) === pid);
  return children.flatMap((child) => [child, ...descendantsOf(child)]);
}

function statOf(pid: number): { state: string; parent: number } | null {
  try {
    const [state = '', parent = '0'] = readFileSync(`/proc/${pid}/stat`, 'utf8')
      .split(') ')
      .at(-1)!
      .split(' ');
    return { state, parent: Number(parent) };
  } catch {
    return null; // the process ended between the two readings
  }
}
