/** A server that is one process. */
import { mkdirSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { onUnawaitedFault } from '#src/base/async/unawaited.ts';
import { type Config, loadConfig } from '#src/base/config/config.ts';
import { type Log, openLog } from '#src/base/log/log.ts';
import { ServerMetrics } from '#src/base/metrics/server-metrics.ts';
import { PlainHost } from '#src/confined/processes/host/plain-host.ts';
import type { App } from '#src/start/app/app-interface.ts';
import type { RemoteKernels } from '#src/start/app/open-nodes.ts';
import { hostMaker } from '#src/start/app/prerequisites.ts';
import { createApp } from '#src/start/app.ts';
import { DataDirectory } from '#storage/disk/data-directory.ts';
import { SimulatedZygote } from './kernel/simulated-zygote.ts';
import type { SimulatedNodes } from './simulated-nodes.ts';
import { aside, beginLife } from './simulated-process.ts';
import { SimulatedServer } from './simulated-server.ts';
import { zygotesOf } from './stand-ins/zygote-process.ts';
import { type Life, OUTSIDE, textOf, world } from './world/world.ts';

export class LoneServer extends SimulatedServer {
  #lives = 0;
  #life: Life = OUTSIDE;
  #app: App | undefined;
  #zygotes: SimulatedZygote[] = [];
  readonly #hasNodes: boolean;

  constructor(folder: string, nodes?: SimulatedNodes) {
    super(folder, {}, nodes);
    this.#hasNodes = nodes !== undefined;
  }

  get lives(): number {
    return this.#lives;
  }

  get life(): Life {
    return this.#life;
  }

  receiver(): Life {
    return this.#life;
  }

  protected zygotes(): readonly SimulatedZygote[] {
    return this.#hasNodes ? zygotesOf(this.world).filter(({ life }) => life === this.#life) : this.#zygotes;
  }

  protected has(life: Life): boolean {
    return life === this.#life;
  }

  start(): Promise<void> {
    const life: Life = { name: `life ${++this.#lives}`, isOver: false };
    this.#life = life;
    this.isBroken = false;
    this.#zygotes = [];
    beginLife();
    rmSync(join(this.folder, 'store'), { recursive: true, force: true }); // its records are on the disk of the world
    return new Promise((resolve, reject) => {
      const ready = (app: App) => () => {
        this.#app = app;
        this.up = life;
        this.world.trace.add('life', `${this.#lives} serves`);
        resolve();
      };
      this.world.after(
        0,
        () => {
          this.#open().then(
            (app) => this.world.after(0, ready(app), OUTSIDE),
            (error) => this.world.after(0, () => reject(error), OUTSIDE),
          );
        },
        life,
      );
    });
  }

  kill(): void {
    if (this.#life.isOver) return;
    this.world.trace.add('life', `${this.#lives} is killed`);
    this.world.count('crashes');
    const zygotes = this.zygotes();
    this.#leave();
    for (const zygote of zygotes) zygote.serverDied();
  }

  async drain(): Promise<void> {
    const app = this.#app;
    if (app === undefined || this.#life.isOver) return;
    this.world.trace.add('life', `${this.#lives} drains`);
    this.world.count('drains');
    await new Promise<void>((resolve) => {
      const end = () => {
        app[Symbol.asyncDispose]().then(
          () => this.world.after(0, resolve, OUTSIDE),
          (error: unknown) => {
            this.world.problem(`a drain has failed: ${textOf(error)}`);
            this.world.after(0, resolve, OUTSIDE);
          },
        );
      };
      this.world.after(0, end, this.#life);
    });
    this.#leave();
  }

  #leave(): void {
    this.up = undefined;
    this.#app = undefined;
    this.world.end(this.#life);
    this.cutConnections(this.#life);
  }

  async #open(): Promise<App> {
    const { folder } = this;
    const { config } = loadConfig({ ...this.settings, TROUPE_WORKERS: '1' }, { cwd: folder });
    const log = openLog({ level: 'info', destination: { write: (line) => this.writeLog(line) } });
    onUnawaitedFault((error, place) => this.complain(`${place}: ${textOf(error)}`));
    const directory = DataDirectory.inherited(folder);
    for (const path of [directory.storePath, directory.runPath])
      mkdirSync(path, { recursive: true, mode: 0o700 });
    const makeHost = hostMaker({ config, log, directory, runDir: directory.runPath });
    const remote = config.kernelNodes === 'none' ? undefined : await openWithNodes(config, directory, log);
    const startZygote =
      remote?.starterOf('usual') ?? SimulatedZygote.starter((zygote) => this.#zygotes.push(zygote));
    const host = makeHost(false, { startZygote });
    await host.start();
    return createApp({
      config,
      log,
      prerequisites: {
        metrics: new ServerMetrics(),
        directory,
        host,
        plainHost: new PlainHost(() => makeHost(false)), // without packages it is never started
        kernelsReady: Promise.resolve({ confinement: 'none' }),
        remote,
        [Symbol.asyncDispose]: () => host[Symbol.asyncDispose](),
      },
      onFatal: (error) => {
        if (!this.isBroken) this.complain(`the store has failed: ${textOf(error)}`);
        this.kill(); // a server that cannot write exits at once
      },
    });
  }
}

/** Listens for nodes, as `prerequisites.ts` does. */
async function openWithNodes(...context: [Config, DataDirectory, Log]): Promise<RemoteKernels> {
  const { openNodes } = await world().stopWorldFor(() => aside(() => import('#src/start/app/open-nodes.ts')));
  const [config, directory, log] = context;
  return openNodes(config, directory, log, 'with sessions');
}
