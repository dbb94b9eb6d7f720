import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { setTimeout as sleep } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import { Api, MARK } from '../api.ts';
import { repeatRuns } from '../counting/repeated-runs.ts';
import type { UnitOfWork } from '../counting/unit.ts';
import { Feed } from '../feed.ts';
import { atMost, type Measure, median, spread } from '../measure.ts';
import { anonymousBytes, cpuMs } from '../processes.ts';
import type { Scenario, Stage } from '../scenario.ts';
import type { LaunchedServer } from '../server.ts';
import { temporaryFolder } from '../temporary-folder.ts';
import { expected, type Wire } from '../wire.ts';
import { cancelOnce, LOOP } from './cancel.ts';

const PROGRAM = fileURLToPath(new URL('../../server/node.js', import.meta.url));
const KIB = 1024;
/**
 * A run on a node may take this much longer than a run on the server's machine. The round trip, some 0.05 ms on
 * loopback, does not count.
 */
const RUN_MORE_MS = 1;
const NODES_OF_MANY = 5;
/** How many requests are made at once. */
const LANES = 8;

const WITH_NODES = {
  TROUPE_KERNEL_NODES: 'join',
  TROUPE_NODES_HOST: '127.0.0.1',
  TROUPE_NODES_PORT: '0',
};

/** Runs a cell on a node again and again; one subscriber follows the runs. */
const unit: UnitOfWork = {
  name: 'run on a node',
  count: 400,
  environment: WITH_NODES,
  async prepare({ api }) {
    const node = await startNode(api, 'n0', 0);
    node.unref(); // this process ends although the node runs, and ends the node
    process.once('exit', () => node.kill('SIGKILL'));
    await untilJoined(api, 1);
    const { id } = await api.session(['1 + 1']);
    const feed = await api.follow(id);
    const wire = await api.wire();
    const request = api.executeBytes(id, 'c0');
    return { feed, perform: (count) => repeatRuns(feed, wire, request, count) };
  },
};

/** Measures kernels on nodes and kernels on the server's machine, in turn. */
export const nodes: Scenario = {
  name: 'nodes',
  title: 'Kernels on a node of this machine (loopback, TLS) beside kernels of the server itself, in turn',
  limitS: 900,
  unit,
  async run(stage) {
    const unix = await stage.server();
    const onNodes = await startWithNodes(stage, 1);
    const sides = [await Side.open(unix), await Side.open(onNodes.server)] as const;
    for (let round = -5; round < stage.count(60); round++)
      for (const side of sides) await side.measureOpening(round < 0);
    for (let round = 0; round < stage.count(20, 2); round++)
      for (const side of sides) await side.measureWork(stage.quick ? 10 : 100);
    for (let round = 0; round < stage.count(60, 3); round++)
      for (const side of sides) await side.measureCancel();
    const [here, there] = sides;
    const memory = await memoryOfKernels(unix, onNodes.server, stage.count(30, 5));
    const deaths = await measureDeaths(stage);
    const many = await measureMany(stage);
    return [
      spread('session ready, on the server', here.readyMs),
      spread('session ready, on a node', there.readyMs),
      atMost('session ready, node to server', median(there.readyMs) / median(here.readyMs), '×', 1.2),
      spread('run, on the server', here.runMs),
      spread('run, on a node', there.runMs),
      atMost('run, longer on a node', median(there.runMs) - median(here.runMs), 'ms', RUN_MORE_MS),
      spread('code call, on the server', here.callMs),
      spread('code call, on a node', there.callMs),
      spread('cancel, on the server', here.cancelMs),
      spread('cancel, on a node', there.cancelMs),
      atMost('cancel, node to server', median(there.cancelMs) / median(here.cancelMs), '×', 1.15),
      spread('processor time of the server for a run, without nodes', here.cpuOfRunMs),
      spread('processor time of the server for a run, with a node', there.cpuOfRunMs),
      atMost(
        'processor time of a run, node to server',
        median(there.cpuOfRunMs) / median(here.cpuOfRunMs),
        '×',
        1.1,
      ),
      ...memory,
      ...deaths,
      ...many,
    ];
  },
};

/** One of the two servers, with a session in which it works. */
class Side {
  readonly readyMs: number[] = [];
  readonly runMs: number[] = [];
  readonly callMs: number[] = [];
  readonly cancelMs: number[] = [];
  readonly cpuOfRunMs: number[] = [];
  readonly #server: LaunchedServer;
  readonly #id: string;
  readonly #feed: Feed;
  readonly #endless: string;
  readonly #endlessFeed: Feed;
  readonly #wire: Wire;

  private constructor(
    server: LaunchedServer,
    wire: Wire,
    [id, feed]: [string, Feed],
    [endless, endlessFeed]: [string, Feed],
  ) {
    this.#server = server;
    this.#wire = wire;
    this.#id = id;
    this.#feed = feed;
    this.#endless = endless;
    this.#endlessFeed = endlessFeed;
  }

  static async open(server: LaunchedServer): Promise<Side> {
    const { api } = server;
    const opened = async (code: string): Promise<[string, Feed]> => {
      const { id } = await api.session([code]);
      return [id, await api.follow(id)];
    };
    const side = new Side(server, await api.wire(), await opened('1 + 1'), await opened(LOOP));
    for (let i = 0; i < 300; i++) await side.#run();
    return side;
  }

  async measureOpening(isWarmUp: boolean): Promise<void> {
    const { api } = this.#server;
    const id = await api.notebook(['x = 1']);
    const open = api.openBytes(id, await api.environment());
    const startedAt = performance.now();
    expected(await this.#wire.send(open), 202);
    const { feed, seen } = await Feed.open(api.endpoint, id, MARK.ready);
    const readyAt = await seen[0]!;
    feed.close();
    await api.close(id);
    if (!isWarmUp) this.readyMs.push(readyAt - startedAt);
  }

  async measureWork(runs: number): Promise<void> {
    const { api, pid } = this.#server;
    const before = cpuMs([pid]);
    for (let i = 0; i < runs; i++) this.runMs.push(await this.#run());
    this.cpuOfRunMs.push((cpuMs([pid]) - before) / runs);
    const code = api.codeBytes(this.#id, '1+1');
    for (let i = 0; i < runs / 2; i++) {
      const startedAt = performance.now();
      this.callMs.push(expected(await this.#wire.send(code), 200).at - startedAt);
    }
  }

  async measureCancel(): Promise<void> {
    this.cancelMs.push(await cancelOnce(this.#server.api, this.#endless, this.#endlessFeed, this.#wire));
  }

  async #run(): Promise<number> {
    const completed = this.#feed.until(MARK.completed);
    const startedAt = performance.now();
    const [accepted, completedAt] = await Promise.all([
      this.#wire.send(this.#server.api.executeBytes(this.#id, 'c0')),
      completed,
    ]);
    expected(accepted, 202);
    return completedAt - startedAt;
  }
}

interface WithNodes {
  readonly server: LaunchedServer;
  readonly nodes: readonly ChildProcess[];
}

/** Starts a server and nodes of it. Resolves when all of them have joined. */
async function startWithNodes(stage: Stage, count: number, sessions = 0): Promise<WithNodes> {
  const server = await stage.server({ environment: WITH_NODES });
  const started: ChildProcess[] = [];
  for (let number = 0; number < count; number++) {
    const child = await startNode(server.api, `n${number}`, sessions);
    started.push(child);
    stage.after(async () => {
      if (child.exitCode !== null || child.signalCode !== null) return;
      child.kill('SIGTERM');
      child.kill('SIGCONT');
      await once(child, 'close');
    });
  }
  await untilJoined(server.api, count);
  return { server, nodes: started };
}

async function startNode(api: Api, name: string, sessions: number): Promise<ChildProcess> {
  const { code, port } = await api.call<{ code: string; port: number }>(
    'POST',
    '/api/v3/nodes/invitations',
    {},
  );
  const folder = temporaryFolder('node');
  const { PATH = '', HOME = '', TROUPE_PYTHON } = process.env;
  const given = JSON.stringify({ invitation: `127.0.0.1:${port}#${code}`, name });
  const script = `import(${JSON.stringify(PROGRAM)}).then(({ program }) => program.exports.join(${given}))`;
  return spawn(process.execPath, ['--input-type=module', '-e', script], {
    cwd: folder.path,
    stdio: ['ignore', 'ignore', 'ignore'],
    env: {
      PATH,
      HOME,
      ...(TROUPE_PYTHON === undefined ? {} : { TROUPE_PYTHON }),
      TROUPE_NODE_DIR: folder.path,
      TROUPE_NODE_SESSIONS: String(sessions),
      TROUPE_LOG_LEVEL: 'warn',
    },
  });
}

async function untilJoined(api: Api, count: number): Promise<void> {
  for (;;) {
    const { items } = await api.call<{ items: readonly { readonly state: string }[] }>(
      'GET',
      '/api/v3/nodes',
    );
    if (items.filter(({ state }) => state === 'joined').length >= count) return;
    await sleep(200);
  }
}

/** Returns how much of the server's memory a kernel takes: one on the server's machine, and one on a node. */
async function memoryOfKernels(
  unix: LaunchedServer,
  node: LaunchedServer,
  count: number,
): Promise<Measure[]> {
  const grown = async ({ api, pid, untilIdle }: LaunchedServer): Promise<number> => {
    const ids: string[] = [];
    for (let i = 0; i < 5; i++) ids.push((await api.session(['1'])).id);
    await untilIdle();
    const before = anonymousBytes(pid);
    for (let i = 0; i < count; i++) ids.push((await api.session(['1'])).id);
    await untilIdle();
    const each = (anonymousBytes(pid) - before) / count / KIB;
    for (const id of ids) await api.close(id);
    return each;
  };
  const [here, there] = [await grown(unix), await grown(node)];
  return [
    atMost('memory of the server for a session, on the server', here, 'KiB'),
    atMost('memory of the server for a session, on a node', there, 'KiB'),
  ];
}

/**
 * Measures the time until a subscriber learns that a node is gone: one node is killed, and one becomes silent, as if
 * its cable were pulled.
 */
async function measureDeaths(stage: Stage): Promise<Measure[]> {
  const killedMs: number[] = [];
  const silentMs: number[] = [];
  for (const [signal, figures, rounds] of [
    ['SIGKILL', killedMs, stage.count(10, 1)],
    ['SIGSTOP', silentMs, stage.count(3, 1)],
  ] as const) {
    for (let round = 0; round < rounds; round++) {
      const {
        server,
        nodes: [node],
      } = await startWithNodes(stage, 1);
      const { id } = await server.api.session(['1']);
      const feed = await server.api.follow(id);
      const told = feed.until('kernel_host_lost');
      const startedAt = performance.now();
      node!.kill(signal);
      figures.push((await told) - startedAt);
      feed.close();
      node!.kill('SIGKILL');
      await server.end();
    }
  }
  return [
    spread('a killed node is told', killedMs, { max: 100 }),
    spread('a silent node is told', silentMs, { max: 8000 }),
  ];
}

/** Opens many sessions on several nodes, runs a cell of each, and closes them. */
async function measureMany(stage: Stage): Promise<Measure[]> {
  const count = stage.count(500, 10);
  const { server } = await startWithNodes(stage, NODES_OF_MANY, Math.ceil(count / NODES_OF_MANY) + 1);
  const apis = Array.from({ length: LANES }, () => new Api(server.api.endpoint)); // each client makes one call at a time
  const lanes = async (work: (api: Api, index: number) => Promise<void>): Promise<number> => {
    const startedAt = performance.now();
    await Promise.all(
      apis.map(async (api, lane) => {
        for (let index = lane; index < count; index += LANES) await work(api, index);
      }),
    );
    return (performance.now() - startedAt) / 1000;
  };
  const ids: string[] = [];
  const openS = await lanes(async (api, index) => {
    const { id } = await api.session(['1 + 1']);
    ids[index] = id;
  });
  const runS = await lanes((api, index) => api.run(ids[index]!, 'c0'));
  const closeS = await lanes((api, index) => api.close(ids[index]!));
  return [
    atMost(`${count} sessions on ${NODES_OF_MANY} nodes, opened`, count / openS, '/s'),
    atMost(`${count} sessions on ${NODES_OF_MANY} nodes, a run of each`, count / runS, '/s'),
    atMost(`${count} sessions on ${NODES_OF_MANY} nodes, closed`, count / closeS, '/s'),
  ];
}
