/**
 * Machines that run kernels for a server: the real program of a node on each of them, in lives and in a graph of modules of its own. Each
 * machine starts its program again when that has ended, as a service manager does.
 */
import { X509Certificate } from 'node:crypto';
import { mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { keyOf } from '#src/confined/nodes/enrolled-nodes.ts';
import type { Child, SimulatedZygote } from './kernel/simulated-zygote.ts';
import { AUTHORITY, NO_KEY, NODES } from './nodes/fixed-certificates.ts';
import { letGhostsCome } from './nodes/ghosts.ts';
import { beginLife, moduleOf } from './simulated-process.ts';
import { sendSignal } from './stand-ins/processes.ts';
import { type Route, routeOf } from './stand-ins/wire.ts';
import { zygotesOf } from './stand-ins/zygote-process.ts';
import { type Life, OUTSIDE, textOf, type World, world } from './world/world.ts';

const PORT = 8790;
/** How long the server waits for a sign of life (`protocol.ts`). */
const LOST_MS = 7000;
const SESSIONS = '8';
const NODE_LOST = 'a kernel node is lost';
/** The proof that kernels start fails if its kernel host is killed. */
const NO_PROOF = 'no kernel can be started';
const HOST_LOST = 'the kernel host has ended and is started again';
/** How long a service manager waits until it starts a program again. */
const LEAST_PAUSE_MS = 100;
const MAX_PAUSE_MS = 3000;
/** The most that a silence or a stop takes. Half of the silences are shorter than the lease. */
const SHORT_MS = 3000;
const LONG_MS = 12_000;
/** How long after a misfortune the server may say that it has lost a node: its patience, and a start. */
const AFTERWARDS_MS = 12_000;
/** How long the program of a node may take to end, and a kernel to end after its server: the lease, and some more. */
const END_MS = 3000;
const KERNELS_END_MS = 7000;
const STEP_MS = 50;

class Machine {
  readonly name: string;
  readonly folder: string;
  readonly world: World = world();
  readonly route: Route;
  life: Life = OUTSIDE;
  #starts = 0;

  constructor(folder: string, name: string) {
    this.name = name;
    this.folder = join(folder, name);
    this.route = routeOf(this.world, name);
  }

  get isUp(): boolean {
    return this.life !== OUTSIDE && !this.life.isOver;
  }

  begin(): Life {
    this.life = { name: `node ${this.name} ${++this.#starts}`, graph: this.name, isOver: false };
    this.route.isDark = false;
    return this.life;
  }

  /** The kernel hosts of all of its lives that have not ended. */
  get zygotes(): readonly SimulatedZygote[] {
    return zygotesOf(this.world).filter(({ life }) => life.graph === this.name);
  }

  /** The kernels whose end the kernel host has not reported. A kernel that was killed may stay in the system for a while. */
  get unreported(): readonly Child[] {
    return this.zygotes
      .flatMap(({ children }) => [...children.values()])
      .filter(({ kind }) => kind === 'fork');
  }

  get kernels(): readonly Child[] {
    return this.unreported.filter(({ life }) => !life.isOver);
  }
}

export class SimulatedNodes {
  /** The settings of the server. */
  readonly settings = { TROUPE_KERNEL_NODES: 'join', TROUPE_NODES_PORT: String(PORT) };
  readonly #world: World = world();
  readonly #machines: readonly Machine[];
  #killedHosts = 0;
  #isEnding = false;

  /** `folder` is that of the server, which has enrolled the nodes before. */
  constructor(folder: string, count: number) {
    this.#world.hasNodes = true;
    letGhostsCome(this.#world);
    const names = NODES.slice(0, count).map((_, at) => `n${at + 1}`);
    this.#machines = names.map((name) => new Machine(folder, name));
    const nodes = names.map((name, at) => ({
      name,
      key: keyOf(new X509Certificate(NODES[at]!)),
      enrolledAt: new Date(this.#world.clock.nowMs).toISOString(),
      isDraining: false,
    }));
    mkdirSync(join(folder, 'nodes'), { mode: 0o700 });
    writeFileSync(join(folder, 'nodes', 'authority.pem'), `${NO_KEY}\n${AUTHORITY}\n`, { mode: 0o600 });
    writeFileSync(join(folder, 'nodes', 'enrolled.json'), JSON.stringify({ version: 1, nodes }), {
      mode: 0o600,
    });
    for (const [at, machine] of this.#machines.entries()) {
      mkdirSync(machine.folder, { mode: 0o700 });
      const membership = {
        name: machine.name,
        host: '127.0.0.1',
        port: PORT,
        key: NO_KEY,
        certificate: NODES[at]!,
        authority: AUTHORITY,
      };
      writeFileSync(join(machine.folder, 'membership.json'), JSON.stringify(membership), { mode: 0o600 });
    }
  }

  /** The kernel hosts of all nodes. */
  get zygotes(): readonly SimulatedZygote[] {
    return this.#machines.flatMap(({ zygotes }) => zygotes);
  }

  /** Starts the programs of all nodes. */
  start(): void {
    for (const machine of this.#machines) this.#start(machine);
  }

  /** Returns whether a misfortune explains what the server has logged. */
  expects(message: string): boolean {
    if (message === NO_PROOF) return this.#world.counts.has('killed hosts');
    return message === NODE_LOST && this.#world.nowMs < this.#world.nodesTroubledUntilMs;
  }

  /** Has one of the nodes fail. */
  disturb(): void {
    const { ofNodes } = this.#world;
    const machine = ofNodes.pick(this.#machines);
    if (!machine.isUp) return;
    const dice = ofNodes.next();
    const ms = ofNodes.next() * (ofNodes.is(0.5) ? SHORT_MS : LONG_MS);
    if (dice < 0.15) this.#kill(machine);
    else if (dice < 0.25) this.#killHost(machine);
    else if (dice < 0.35) this.#darken(machine);
    else if (dice < 0.5) this.#cut(machine);
    else if (dice < 0.65) this.#stop(machine, ms);
    else if (dice < 0.75) this.#fade(machine);
    else this.#silence(machine, ms);
  }

  /** Lets no node fail any more. */
  calm(): void {
    for (const { route, life } of this.#machines) {
      route.silentUntilMs.toServer = 0;
      route.silentUntilMs.toNode = 0;
      life.stoppedUntilMs = Math.min(life.stoppedUntilMs ?? 0, this.#world.nowMs);
    }
  }

  /** The server has ended: no kernel is left, and the programs end when they are told to. Resolves when that was judged. */
  async judgeEnd(): Promise<void> {
    const untilMs = this.#world.nowMs + KERNELS_END_MS;
    const left = () => this.#machines.flatMap(({ kernels }) => kernels);
    while (left().length > 0 && this.#world.nowMs < untilMs) await this.#world.sleep(STEP_MS);
    for (const { life } of left()) this.#world.problem(`${life.name} lives, and its server has ended`);
    this.#isEnding = true;
    const present = this.#machines.filter(({ isUp }) => isUp);
    for (const { life } of present) sendSignal(life, 'SIGTERM');
    const endMs = this.#world.nowMs + END_MS;
    while (present.some(({ isUp }) => isUp) && this.#world.nowMs < endMs) await this.#world.sleep(STEP_MS);
    for (const { life } of present)
      if (!life.isOver) this.#world.problem(`${life.name} does not end, and was told to`);
  }

  /** While nobody acts: each kernel on a node is one that its server knows. `known` resolves with their number; undefined without an answer. */
  async judgeKernels(known: () => Promise<number | undefined>): Promise<void> {
    let words = '';
    for (const untilMs = this.#world.nowMs + KERNELS_END_MS; this.#world.nowMs < untilMs; ) {
      const count = await known();
      const names = this.#machines.flatMap(({ unreported }) => unreported.map(({ life }) => life.name));
      if (count === names.length) return;
      words = `the server knows ${count} kernels on nodes, and nodes have these: ${names.join(', ')}`;
      await this.#world.sleep(STEP_MS);
    }
    this.#world.problem(words);
  }

  #start(machine: Machine): void {
    const life = machine.begin();
    this.#world.trace.add('node', `${life.name} starts`);
    this.#world.after(
      0,
      () => {
        beginLife(life.graph);
        this.#run(machine, life).then(
          (code) => this.#world.after(0, () => this.#ended(machine, life, code), OUTSIDE),
          (error: unknown) => {
            if (!life.isOver) this.#world.problem(`${life.name} has failed: ${textOf(error)}`);
          },
        );
      },
      life,
    );
  }

  async #run(machine: Machine, life: Life): Promise<number> {
    const { serveAsNode } = await moduleOf<typeof import('#src/start/process/serve-as-node.ts')>(
      '#src/start/process/serve-as-node.ts',
      life,
    );
    const { loadConfig } = await moduleOf<typeof import('#src/base/config/config.ts')>(
      '#src/base/config/config.ts',
      life,
    );
    const { openLog } = await moduleOf<typeof import('#src/base/log/log.ts')>('#src/base/log/log.ts', life);
    const settings = {
      TROUPE_NODE_DIR: machine.folder,
      TROUPE_NODE_SESSIONS: SESSIONS,
      TROUPE_PRELOAD: 'false',
      TROUPE_KERNEL_CONFINEMENT: 'off',
      TROUPE_PYTHON: '/usr/bin/python3',
    };
    const { config } = loadConfig(settings, { cwd: machine.folder });
    const log = openLog({ level: 'info', destination: { write: (line) => this.#writeLog(life, line) } });
    return serveAsNode({ config, log }, {});
  }

  #writeLog(life: Life, line: string): void {
    const { level, msg } = JSON.parse(line) as Record<string, unknown>;
    this.#world.trace.add('log', `${life.name}: ${String(level)} ${String(msg)}`);
    if (life.isOver || (level !== 'error' && level !== 'fatal')) return;
    if (msg === HOST_LOST && (this.#killedHosts > 0 || this.#world.nowMs < this.#world.nodesTroubledUntilMs))
      return;
    this.#world.problem(`${life.name} logged: ${line}`);
  }

  #ended(machine: Machine, life: Life, code: number): void {
    if (life.isOver) return;
    this.#world.trace.add('node', `${life.name} has ended with ${code}`);
    if (!this.#isEnding) this.#world.problem(`${life.name} has ended by itself with the code ${code}`);
    this.#end(machine);
  }

  #end(machine: Machine): void {
    const { life } = machine;
    const zygotes = machine.zygotes.filter((zygote) => zygote.life === life);
    this.#world.end(life);
    for (const zygote of zygotes) zygote.serverDied();
    if (this.#isEnding) return;
    const pauseMs = LEAST_PAUSE_MS + this.#world.ofNodes.next() * MAX_PAUSE_MS;
    this.#world.after(pauseMs, () => this.#start(machine), OUTSIDE);
  }

  #note(machine: Machine, what: string, ms = 0): void {
    this.#world.nodesTroubledUntilMs = Math.max(
      this.#world.nodesTroubledUntilMs,
      this.#world.nowMs + ms + AFTERWARDS_MS,
    );
    this.#world.count(`misfortunes of nodes: ${what}`);
    this.#world.trace.add(
      'node',
      `${machine.life.name}: ${what}${ms === 0 ? '' : ` for ${ms.toFixed(0)} ms`}`,
    );
  }

  #kill(machine: Machine): void {
    this.#note(machine, 'killed');
    this.#end(machine);
  }

  #killHost(machine: Machine): void {
    const zygote = machine.zygotes.find(({ life, alive }) => life === machine.life && alive);
    if (zygote === undefined) return;
    this.#note(machine, 'its kernel host is killed');
    this.#killedHosts++;
    this.#world.after(0, () => zygote.kill(), zygote.life);
  }

  /** The machine has no power any more: nobody hears of its end. */
  #darken(machine: Machine): void {
    this.#note(machine, 'without power');
    machine.route.isDark = true;
    for (const { client } of [...machine.route.wires]) client?.lose();
    machine.route.wires.clear();
    for (const { life } of machine.kernels) this.#world.end(life);
    this.#end(machine);
  }

  /** The network ends all connections. */
  #cut(machine: Machine): void {
    this.#note(machine, 'its connections are cut');
    for (const { client, server } of [...machine.route.wires]) {
      client?.cut();
      server?.cut();
    }
  }

  #stop(machine: Machine, ms: number): void {
    this.#note(machine, 'stopped', ms);
    machine.life.stoppedUntilMs = this.#world.nowMs + ms;
  }

  /** The server does not hear the node any more, and some seconds later the node does not hear the server. */
  #fade(machine: Machine): void {
    const { ofNodes, nowMs } = this.#world;
    const { silentUntilMs } = machine.route;
    const laterMs = ofNodes.next() * LOST_MS;
    this.#note(machine, 'silent step by step', LONG_MS);
    silentUntilMs.toServer = Math.max(silentUntilMs.toServer, nowMs + LONG_MS);
    const deafen = () => {
      if (this.#world.isDisturbed) silentUntilMs.toNode = Math.max(silentUntilMs.toNode, nowMs + LONG_MS);
    };
    this.#world.after(laterMs, deafen, OUTSIDE);
  }

  /** Bytes do not arrive for a while, in one direction or in both. */
  #silence(machine: Machine, ms: number): void {
    const { ofNodes, nowMs } = this.#world;
    const { silentUntilMs } = machine.route;
    const dice = ofNodes.next();
    this.#note(machine, dice < 0.6 ? 'silent' : dice < 0.8 ? 'not heard' : 'deaf', ms);
    if (dice < 0.8) silentUntilMs.toServer = Math.max(silentUntilMs.toServer, nowMs + ms);
    if (dice < 0.6 || dice >= 0.8) silentUntilMs.toNode = Math.max(silentUntilMs.toNode, nowMs + ms);
  }
}
