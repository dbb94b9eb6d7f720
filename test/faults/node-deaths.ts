/**
 * Kills, stops and cuts off kernel nodes, their kernel hosts, workers and the server while a session is opened, runs cells, is cancelled
 * or closed. After each fault it checks that every acknowledged run has one end, that no session had two kernels at once, that no
 * process is left that belongs to no session, and that no process keeps more and more descriptors.
 */
import { readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as later } from 'node:timers/promises';
import { ApiError, ConnectionError } from '#src/contract/client/api-error.ts';
import { type ChildServer, startChildServer } from '#test/support/child-server.ts';
import { invite, type NodeProcess, startNode } from '#test/support/kernel-node.ts';
import { type Machine, makeMachine, whyNoMachines } from '#test/support/machine.ts';
import { OpenNotebook, openNotebook } from '#test/support/notebook-fixture.ts';
import { descendants, eventually, processFact, workersOf } from '#test/support/processes.ts';
import { SeededRandom } from '#test/support/random.ts';
import type { Owner } from '#test/support/server-fixture.ts';

export interface NodeFaultOptions {
  readonly rounds: number;
  readonly seed: number;
  /** 1: a server of one process. */
  readonly workers: number;
  readonly owner: Owner;
  readonly say: (line: string) => void;
}

export interface NodeFaultReport {
  readonly rounds: number;
  readonly runs: number;
  /** How the runs have ended. */
  readonly endings: Readonly<Record<string, number>>;
  readonly faults: Readonly<Record<string, number>>;
  /** The kernels that the sessions have had. */
  readonly kernels: number;
}

const NODES = 2;
/** Longer than a cut-off node needs to join again. */
const RECOVERED_MS = 90_000;
const MAX_PAUSE_MS = 400;
/** How many descriptors of a process may come and go, such as connections that are kept for the next request. */
const SPARE_DESCRIPTORS = 10;
/** A client keeps some connections, and each of them may be of a worker that was killed. */
const MAX_ATTEMPTS = 10;
/** A thread of the kernel writes its own name into a file, again and again. */
const BEATING = `
import threading, time, uuid
_name = uuid.uuid4().hex
def _beat():
    while True:
        with open("beats", "a") as file: file.write(_name + "\\n")
        time.sleep(0.02)
threading.Thread(target=_beat, daemon=True).start()
begun = 1
`;
const CELLS = {
  beat: BEATING,
  quick: 'begun + 1',
  slow: 'import time as _time\n_ = begun\n_time.sleep(0.5)',
};

interface Node {
  readonly machine: Machine | undefined;
  process: NodeProcess;
  /** How often the node has joined. */
  joins: number;
}

type Fault = readonly [name: string, act: () => Promise<void>];

/** Rejects with the first violation, and with the round in which it was found. */
export async function driveNodeFaults(options: NodeFaultOptions): Promise<NodeFaultReport> {
  const drive = new NodeFaults(options);
  await drive.begin();
  for (let round = 1; round <= options.rounds; round++) {
    await drive.round(round).catch((error: unknown) => {
      throw new Error(`round ${round} of seed ${options.seed}: ${String(error)}`, { cause: error });
    });
    if (round % 10 === 0) options.say(`${round} rounds, ${JSON.stringify(drive.faults)}`);
  }
  return drive.report(options.rounds);
}

class NodeFaults {
  readonly faults: Record<string, number> = {};
  readonly #options: NodeFaultOptions;
  readonly #random: SeededRandom;
  readonly #endings: Record<string, number> = {};
  readonly #nodes: Node[] = [];
  #server!: ChildServer;
  /** The number of descriptors of each process after its first round. */
  readonly #descriptors = new Map<number, number>();
  #runs = 0;
  #kernels = 0;

  constructor(options: NodeFaultOptions) {
    this.#options = options;
    this.#random = new SeededRandom(options.seed);
  }

  async begin(): Promise<void> {
    const { owner, workers } = this.#options;
    this.#server = await startChildServer(owner, {
      TROUPE_KERNEL_NODES: 'join',
      TROUPE_NODES_HOST: '0.0.0.0',
      TROUPE_NODES_PORT: String(21_000 + (process.pid % 10_000)),
      TROUPE_WORKERS: String(workers),
    });
    for (let index = 0; index < NODES; index++) {
      const machine = whyNoMachines() === undefined ? makeMachine(owner) : undefined;
      const node = startNode(owner, {
        invitation: await invite(this.#server, machine?.here),
        name: `n${index}`,
        ...(machine && { command: machine.command }),
      });
      await node.joined();
      this.#nodes.push({ machine, process: node, joins: 1 });
    }
  }

  async round(round: number): Promise<void> {
    const notebook = await answered(() => this.#openBeating());
    const step = this.#random.pick(['open', 'run', 'cancel', 'close'] as const);
    const [name, act] = this.#random.pick(this.#possibleFaults());
    this.faults[name] = (this.faults[name] ?? 0) + 1;
    const pauseMs = this.#random.below(MAX_PAUSE_MS);
    const working = this.#do(step, notebook).catch(() => undefined); // the step may be refused or cut off
    await later(pauseMs);
    await act();
    await working;
    // A connection of a worker that was killed ends without an answer, now or with the next request on it.
    await answered(() => this.#recover());
    await answered(() => this.#checkRuns(notebook));
    this.#kernels += readBeats(this.#beats).size;
    await answered(() => this.#closeAll());
    await answered(() => this.#checkProcesses(round));
  }

  report(rounds: number): NodeFaultReport {
    return {
      rounds,
      runs: this.#runs,
      endings: this.#endings,
      faults: this.faults,
      kernels: this.#kernels,
    };
  }

  async #openBeating(): Promise<OpenNotebook> {
    const notebook = await openNotebook(this.#server, CELLS);
    writeFileSync(this.#beats, '');
    const run = await notebook.run(['beat']);
    if (run.status !== 'completed') throw new Error(`the first run has ended as ${run.status}`);
    return notebook;
  }

  async #do(step: 'open' | 'run' | 'cancel' | 'close', notebook: OpenNotebook): Promise<void> {
    const { client } = this.#server;
    if (step === 'open') await openNotebook(this.#server, { a: '1' });
    else if (step === 'run') for (let count = 0; count < 20; count++) await this.#submit(notebook, 'quick');
    else if (step === 'cancel') {
      const id = await this.#submit(notebook, 'slow');
      await client.runs.cancel(id);
    } else await client.notebookSessions.close(notebook.id);
  }

  async #submit(notebook: OpenNotebook, cell: string): Promise<string> {
    const id = await notebook.submit([cell]);
    this.#runs++;
    this.#acknowledged.push(id);
    await this.#server.client.waitForRun(id);
    return id;
  }

  readonly #acknowledged: string[] = [];

  #possibleFaults(): Fault[] {
    const node = this.#random.pick(this.#nodes);
    const { machine, process: program } = node;
    const zygoteOf = (root: number) => descendants(root).find(({ name }) => name === 'troupe-zygote')?.pid;
    const kill = (pid: number | undefined, signal: NodeJS.Signals) => {
      if (pid !== undefined && processFact(pid) !== undefined) process.kill(pid, signal);
    };
    return [
      [
        'node killed',
        async () => {
          await program.end('SIGKILL');
          node.process = startNode(this.#options.owner, {
            folder: program.folder,
            ...(machine && { command: machine.command }),
          });
          node.joins = 1;
        },
      ],
      [
        'node stopped',
        async () => {
          kill(program.pid, 'SIGSTOP');
          await this.#away(node);
          kill(program.pid, 'SIGCONT');
          node.joins++;
        },
      ],
      [
        'kernel host of a node killed',
        async () => {
          kill(zygoteOf(program.pid), 'SIGKILL');
          node.joins++;
        },
      ],
      [
        'server killed',
        async () => {
          await this.#server.end('SIGKILL');
          this.#server = await this.#server.again();
          for (const one of this.#nodes) one.joins++;
        },
      ],
      ...(machine === undefined
        ? []
        : [
            [
              'cable pulled',
              async () => {
                machine.cut();
                await this.#away(node);
                machine.join();
                node.joins++;
              },
            ] as const,
          ]),
      ...(this.#options.workers === 1
        ? []
        : [
            [
              'worker killed',
              async () => kill(this.#random.pick(workersOf(this.#server.pid)).pid, 'SIGKILL'),
            ] as const,
          ]),
    ];
  }

  async #away({ process: program }: Node): Promise<void> {
    const name = `n${this.#nodes.findIndex((node) => node.process === program)}`;
    await eventually(`${name} is given up`, async () => {
      const { items } = await this.#server.client.nodes.list();
      return items.find((node) => node.name === name)?.state === 'away';
    });
  }

  /** Waits until all nodes have joined. */
  async #recover(): Promise<void> {
    for (const node of this.#nodes) await node.process.joined(node.joins);
    await eventually(
      'all nodes are there',
      async () => {
        const { items } = await this.#server.client.nodes.list();
        return items.every(({ state }) => state === 'joined');
      },
      RECOVERED_MS,
    );
  }

  /** Every acknowledged run has ended, and stays as it is. */
  async #checkRuns(notebook: OpenNotebook): Promise<void> {
    for (let id = this.#acknowledged[0]; id !== undefined; id = this.#acknowledged[0]) {
      const run = await this.#server.client.waitForRun(id);
      const isStale = run.status === 'running' && run.stale === true; // the server was killed
      if (run.status === 'running' && !isStale) throw new Error(`the run ${id} has not ended`);
      const key = isStale ? 'stale' : [run.status, run.error?.code].filter(Boolean).join(' ');
      this.#endings[key] = (this.#endings[key] ?? 0) + 1;
      this.#acknowledged.shift();
    }
    const { status } = await this.#server.client.notebookSessions.get(notebook.id);
    if (status === 'closed') return;
    const { environmentId, session } = notebook;
    const again = new OpenNotebook(this.#server.client, notebook.notebook, environmentId, session);
    await this.#server.client.notebookSessions.waitUntilReady(notebook.id);
    const run = await again.run(['quick']);
    if (run.status !== 'completed') throw new Error(`a run after the fault has ended as ${run.status}`);
  }

  /** The file into which the kernels of the round write. */
  get #beats(): string {
    return join(this.#server.dataDir, 'workspaces', 'ws_home', 'files', 'beats');
  }

  async #closeAll(): Promise<void> {
    const { client } = this.#server;
    let after: string | undefined;
    do {
      const { items, nextCursor } = await client.notebookSessions.list(after === undefined ? {} : { after });
      for (const { sessionId, status } of items)
        if (status !== 'closed') await client.notebookSessions.close(sessionId).catch(() => undefined);
      after = nextCursor ?? undefined;
    } while (after !== undefined);
  }

  async #checkProcesses(round: number): Promise<void> {
    const kernels = () =>
      this.#nodes.flatMap(({ process: { pid } }) =>
        descendants(pid).filter(({ name }) => name === 'troupe-kernel'),
      );
    await eventually(`no kernel is left after round ${round}`, () => kernels().length === 0, 15_000);
    const { items } = await this.#server.client.nodes.list();
    if (items.some((node) => node.kernels > 0)) throw new Error('the server counts kernels that are gone');
    for (const pid of [this.#server.pid, ...this.#nodes.map((node) => node.process.pid)]) {
      const count = () => readdirSync(`/proc/${pid}/fd`).length;
      const first = this.#descriptors.get(pid) ?? count();
      this.#descriptors.set(pid, first);
      const isSteady = () => count() <= first + SPARE_DESCRIPTORS;
      await eventually(`process ${pid} keeps no descriptors after round ${round}`, isSteady, 15_000);
    }
  }
}

/** Repeats the work while its requests get no answer, or the one that their worker has ended. */
async function answered<T>(work: () => Promise<T>): Promise<T> {
  for (let attempt = 1; ; attempt++) {
    try {
      return await work();
    } catch (error) {
      const isUnanswered =
        error instanceof ConnectionError || (error instanceof ApiError && error.code === 'unavailable');
      if (!isUnanswered || attempt === MAX_ATTEMPTS) throw error;
    }
  }
}

/** Returns the names of the kernels that have written. Throws when a kernel wrote again after another kernel had begun. */
function readBeats(path: string): Set<string> {
  const seen = new Set<string>();
  let last = '';
  for (const name of readFileSync(path, 'utf8').split('\n').filter(Boolean)) {
    if (name === last) continue;
    if (seen.has(name))
      throw new Error(`two kernels of one session wrote at the same time: ${last} and ${name}`);
    seen.add(name);
    last = name;
  }
  return seen;
}
