/** The decisions of the engine that keeps nodes on a Ray cluster. Ray's Jobs API is a stand-in here; test/confined/nodes/ray-cluster.test.ts has a real one. */
import assert from 'node:assert/strict';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import test, { type TestContext } from 'node:test';
import { loadConfig } from '#src/base/config/config.ts';
import type { Log } from '#src/base/log/log.ts';
import type { NodeState } from '#src/confined/nodes/kernel-nodes.ts';
import { RayNodes } from '#src/confined/nodes/ray.ts';
import { RayJobs } from '#src/confined/nodes/ray-jobs.ts';
import { openNodes } from '#src/start/app/open-nodes.ts';
import { DataDirectory } from '#storage/disk/data-directory.ts';
import { eventually } from '#test/support/processes.ts';
import { type RayStandIn, type StandInJob, startRayStandIn } from '#test/support/stand-ins/ray-jobs.ts';
import { temporaryDirectory } from '#test/support/store/temporary-store.ts';

const TOKEN = 'token-of-the-cluster';

/** The nodes of a server, which tests change. */
class Nodes {
  readonly states = new Map<string, { -readonly [Name in keyof NodeState]: NodeState[Name] }>();
  waiting = 0;
  changed = (): void => undefined;
  #invitations = 0;

  list = () => [...this.states.values()];
  watch(changed: () => void): void {
    this.changed = changed;
  }
  invite(name?: string) {
    return { code: `${name}-code-${++this.#invitations}`, expiresAt: '', port: 8790 };
  }
  drain(name: string, isDraining: boolean): boolean {
    const node = this.states.get(name);
    if (node !== undefined) node.isDraining = isDraining;
    return node !== undefined;
  }
  remove = (name: string) => this.states.delete(name);

  /** The node joins. */
  join(name: string, kernels = 0, capacity = 2): void {
    const release = { version: '', build: '', scripts: '', marimo: '', python: '' };
    this.states.set(name, {
      name,
      state: 'joined',
      isDraining: false,
      enrolledAt: '',
      joinedAt: '',
      address: '',
      kernels,
      offer: { release, confinement: '', cores: 1, memoryBytes: 1, capacity },
      condition: null,
      problem: null,
    });
    this.changed();
  }

  /** The connection of the node ends. */
  lose(name: string): void {
    this.states.delete(name);
    this.changed();
  }
}

interface Bed {
  readonly ray: RayStandIn;
  readonly nodes: Nodes;
  readonly engine: RayNodes;
  readonly logged: string[];
  /** The jobs that have not ended. */
  readonly open: () => StandInJob[];
  /** Resolves once this many jobs have not ended. */
  readonly opened: (count: number) => Promise<StandInJob[]>;
}

async function bed(
  t: TestContext,
  options: { min?: number; max?: number; keepMs?: number; jobs?: StandInJob[]; failure?: number } = {},
): Promise<Bed> {
  const ray = await startRayStandIn(t, TOKEN);
  ray.failure = options.failure;
  for (const job of options.jobs ?? []) ray.jobs.set(job.submission_id, job);
  const tokenFile = join(temporaryDirectory(t), 'token');
  writeFileSync(tokenFile, `${TOKEN}\n`);
  const nodes = new Nodes();
  const logged: string[] = [];
  const note = (details: object, message: string) => logged.push(`${message} ${JSON.stringify(details)}`);
  const engine = new RayNodes({
    jobs: new RayJobs({ url: ray.url, tokenFile }),
    nodes,
    address: 'server.example',
    serverId: 'abc',
    min: options.min ?? 0,
    max: options.max ?? 10,
    log: { info: note, warn: note, error: note },
    times: { turnMs: 20, keepMs: options.keepMs ?? 0, pauseMs: 1 },
  });
  t.after(() => engine[Symbol.asyncDispose]());
  const open = () => [...ray.jobs.values()].filter(({ status }) => ['PENDING', 'RUNNING'].includes(status));
  const opened = (count: number) =>
    eventually(`${count} jobs`, () => Promise.resolve(open().length === count && open()));
  return { ray, nodes, engine, logged, open, opened };
}

const nameOf = ({ submission_id: id }: StandInJob) => id.replace('troupe-abc-', 'ray-');

test('the server posts a job for each node that is missing, with an invitation of its own and no other secret', async (t) => {
  const { opened } = await bed(t, { min: 2 });
  const jobs = await opened(2);
  for (const job of jobs) {
    assert.equal(job.entrypoint, 'exec troupe node join --exit-when-lost');
    assert.deepEqual(job.entrypoint_resources, { troupe_host: 1 });
    const { TROUPE_NODE_INVITATION: invitation, ...others } = job.runtime_env.env_vars;
    assert.match(invitation!, new RegExp(`^server\\.example:8790#${nameOf(job)}-code-\\d$`));
    assert.deepEqual(others, {});
  }
  const invitations = jobs.map(({ runtime_env }) => runtime_env.env_vars.TROUPE_NODE_INVITATION);
  assert.equal(new Set(invitations).size, 2);
});

test('for a waiting kernel the server requests nodes at once, and idle nodes are drained and given back', async (t) => {
  const { nodes, opened, open } = await bed(t);
  nodes.waiting = 1;
  nodes.changed();
  const [first, second] = (await opened(2)).map(nameOf);
  nodes.waiting = 0;
  nodes.join(first!, 1);
  nodes.join(second!);
  nodes.states.get(first!)!.kernels = 0;
  await opened(0);
  assert.deepEqual(nodes.list(), []);
  assert.deepEqual(open(), []);
});

test('a node that is not needed takes no kernels, and ends once its last kernel has ended', async (t) => {
  const { nodes, opened } = await bed(t);
  nodes.waiting = 1;
  nodes.changed();
  const [first, second] = (await opened(2)).map(nameOf);
  nodes.waiting = 0;
  nodes.join(first!, 1);
  nodes.join(second!, 1);
  nodes.states.get(first!)!.kernels = 0;
  nodes.waiting = 5; // three machines of two kernels, and one more
  nodes.changed();
  const third = (await opened(4)).map(nameOf).filter((name) => name !== first && name !== second);
  for (const name of third) nodes.join(name);
  nodes.waiting = 0;
  nodes.changed();
  await opened(2);
  assert(nodes.states.has(second!), 'the node with a kernel stays');
});

test('a lost node is replaced, and its job is stopped', async (t) => {
  const { nodes, opened, ray } = await bed(t, { min: 1 });
  const [job] = await opened(1);
  job!.status = 'RUNNING';
  nodes.join(nameOf(job!));
  nodes.lose(nameOf(job!));
  const [next] = await eventually('another job', () => {
    const others = [...ray.jobs.values()].filter((one) => one !== job && one.status === 'PENDING');
    return Promise.resolve(others.length === 1 && others);
  });
  assert.notEqual(nameOf(next!), nameOf(job!));
  await eventually('the job of the lost node is stopped', () => job!.status === 'STOPPED');
});

test('a node that an operator drains ends once it has no kernels, and is replaced', async (t) => {
  const { nodes, opened } = await bed(t, { min: 1 });
  const [job] = await opened(1);
  nodes.join(nameOf(job!), 1);
  nodes.drain(nameOf(job!), true);
  nodes.changed();
  await opened(3); // one node for the kernel, and one more
  assert.equal(job!.status, 'PENDING', 'it keeps its kernel');
  nodes.states.get(nameOf(job!))!.kernels = 0;
  const [left] = await opened(1);
  assert.notEqual(left, job);
});

test('there are never more jobs than the settings allow', async (t) => {
  const { nodes, opened, engine } = await bed(t, { max: 3 });
  nodes.waiting = 100;
  nodes.changed();
  const jobs = await opened(2); // the capacity of a machine is not known yet
  nodes.join(nameOf(jobs[0]!));
  await opened(3);
  nodes.changed();
  await eventually('another turn', () => engine.problem === null);
  await opened(3);
});

test('a Ray cluster that does not answer is logged once and asked again', async (t) => {
  const { ray, engine, logged, opened } = await bed(t, { min: 1, failure: 503 });
  await eventually('the problem', () => engine.problem !== null);
  assert.match(engine.problem!, /answered GET \/api\/jobs\/ with 503/);
  ray.failure = 500;
  await eventually('the other problem', () => /with 500/.test(engine.problem ?? ''));
  ray.failure = undefined;
  await opened(1);
  await eventually('no problem', () => engine.problem === null);
  const changes = logged.filter((line) => line.startsWith('Ray starts'));
  assert.equal(changes.length, 3, changes.join('\n'));
  assert(!logged.join().includes('a secret of the request') && !logged.join().includes(TOKEN));
});

test('the error for a wrong token of Ray names the token', async (t) => {
  const { ray, engine } = await bed(t, { min: 1, failure: 401 });
  await eventually('the problem', () => engine.problem !== null);
  assert.equal(engine.problem, `Ray at ${ray.url} refuses the token of TROUPE_RAY_TOKEN_FILE.`);
});

test('a failed job is shown with the last line of its log, and another job replaces it', async (t) => {
  const { engine, opened, ray, nodes } = await bed(t, { min: 1 });
  const [job] = await opened(1);
  Object.assign(job!, { status: 'FAILED', message: 'exit code 127\n/bin/sh: troupe: not found\n' });
  await eventually('the problem', () => engine.problem !== null);
  assert.match(engine.problem!, /could not start on Ray: \/bin\/sh: troupe: not found \(job troupe-abc-/);
  await eventually('another job', () => ray.jobs.size === 2);
  const [next] = await opened(1);
  nodes.join(nameOf(next!));
  await eventually('no problem', () => engine.problem === null);
});

test('jobs of an earlier process of this server are ended, and jobs of other servers are not', async (t) => {
  const earlier = (id: string, status: string): StandInJob => ({
    submission_id: id,
    entrypoint: '',
    entrypoint_resources: {},
    runtime_env: { env_vars: {} },
    status,
    message: '',
  });
  const [waiting, ended, other] = [
    earlier('troupe-abc-1', 'PENDING'),
    earlier('troupe-abc-2', 'FAILED'),
    earlier('troupe-other-1', 'RUNNING'),
  ] as const;
  const { ray, opened } = await bed(t, { min: 1, jobs: [waiting, ended, other] });
  await eventually('a new job', () => [...ray.jobs.values()].some((job) => /^exec/.test(job.entrypoint)));
  assert.deepEqual(
    [waiting.status, ray.jobs.has('troupe-abc-2'), other.status],
    ['STOPPED', false, 'RUNNING'],
  );
  await opened(2);
});

test('the end of the server ends jobs that wait for a machine', async (t) => {
  const { engine, opened, open } = await bed(t, { min: 1 });
  await opened(1);
  await engine[Symbol.asyncDispose]();
  assert.deepEqual(open(), []);
});

test('ten ended jobs stay for their logs, and one more removes the oldest', async (t) => {
  const { ray, opened } = await bed(t, { min: 1 });
  let first: StandInJob | undefined;
  for (let count = 1; count <= 11; count++) {
    const [job] = await opened(1);
    first ??= job;
    if (count === 11) assert(ray.jobs.has(first!.submission_id));
    job!.status = 'FAILED';
  }
  await eventually('the oldest is removed', () => !ray.jobs.has(first!.submission_id));
});

test('a server that lacks a setting for Ray does not start, and its error names the setting', async (t) => {
  const directory = DataDirectory.inherited(temporaryDirectory(t));
  const log = { info() {}, warn() {}, error() {} } as unknown as Log;
  const start = (settings: Record<string, string>) =>
    openNodes(
      loadConfig({ TROUPE_KERNEL_NODES: 'ray:http://127.0.0.1:1', ...settings }).config,
      directory,
      log,
      'with sessions',
    );
  const [address, token] = [{ TROUPE_NODES_ADDRESS: 'a' }, { TROUPE_RAY_TOKEN_FILE: 'b' }] as const;
  await assert.rejects(start(token), /set TROUPE_NODES_ADDRESS/);
  await assert.rejects(start(address), /set TROUPE_RAY_TOKEN_FILE/);
  const bounds = { TROUPE_NODES_MIN: '3', TROUPE_NODES_MAX: '2' };
  await assert.rejects(start({ ...address, ...token, ...bounds }), /must not be greater/);
});
