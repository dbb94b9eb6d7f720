/** Makes this process one that simulates: its globals are the world's, and modules of the product are loaded through `hooks.ts`. */
import { register } from 'node:module';
import { GRAPH, type HookData, type ModuleEdit } from './hooks.ts';
import { onSignal } from './stand-ins/processes.ts';
import { installGlobals } from './world/globals.ts';
import { real } from './world/real.ts';
import { enter, type Life, textOf, World, world } from './world/world.ts';

declare global {
  /** Stops the world until the module is there. */
  var stopWorldFor: typeof World.prototype.stopWorldFor;
  /** Registers what a new process would do with the state of one module. */
  var atEachLife: (graph: string, restart: () => void) => void;
  /** Registers the handler of a signal with the simulated process that runs. */
  var onSignalOfProcess: (signal: string, act: (signal: string) => void) => void;
}

/** By the graph of modules. */
const restarts = new Map<string, (() => void)[]>();

const STAND_INS = {
  '#src/base/fault-points.ts': 'fault-points',
  'node:crypto': 'crypto',
  'node:fs': 'fs',
  'node:fs/promises': 'fs-promises',
  'node:http': 'http',
  'node:net': 'net',
  'node:timers/promises': 'timers-promises',
  'node:tls': 'tls',
  koffi: 'koffi',
  lmdb: 'lmdb',
  'node:cluster': 'cluster',
  undici: 'undici',
};

/** More of them for a primary with workers, by the modules of the product. */
const STAND_INS_OF_PROCESSES = {
  '#src/base/os/file-lock.ts': 'file-lock',
  '#src/base/os/listening-socket.ts': 'listening-socket',
  '#src/confined/processes/host/zygote-process.ts': 'zygote-process',
  '#src/start/process/announce.ts': 'announce',
};

/** More of them for a server with nodes. */
const STAND_INS_OF_NODES = {
  '#src/confined/nodes/certificates.ts': 'certificates',
  '#src/confined/nodes/host/memory.ts': 'memory',
};

/** The parts of a server that run in processes of their own. */
export interface Processes {
  readonly workers?: boolean;
  readonly nodes?: boolean;
}

/** Begins. The product is not loaded before; `edits` are made in its modules. */
export function simulateHere(edits: readonly ModuleEdit[] = [], { workers, nodes }: Processes = {}): void {
  const urlOf = (path: string) => new URL(path, import.meta.url).href;
  const ofProcesses = [
    ...(workers === true || nodes === true ? Object.entries(STAND_INS_OF_PROCESSES) : []),
    ...(nodes === true ? Object.entries(STAND_INS_OF_NODES) : []),
  ];
  const standIns = [
    ...Object.entries(STAND_INS),
    ...(nodes === true ? [['node:os', 'os']] : []),
    ...ofProcesses.map(([name, file]) => [import.meta.resolve(name), file]),
  ].map(([name, file]) => [name, urlOf(`stand-ins/${file}.js`)]);
  const data: HookData = {
    root: urlOf('../../'),
    others: [urlOf('../'), urlOf('../../bench/')],
    standIns: Object.fromEntries(standIns) as Record<string, string>,
    edits,
  };
  register('./hooks.js', import.meta.url, { data });
  globalThis.stopWorldFor = (act) => world().stopWorldFor(() => aside(act));
  globalThis.atEachLife = (graph, restart) => {
    restarts.set(graph, [...(restarts.get(graph) ?? []), restart]);
  };
  globalThis.onSignalOfProcess = (signal, act) => onSignal(world().life, signal, act);
  enter(new World(0));
  installGlobals();
  for (const kind of ['uncaughtException', 'unhandledRejection']) process.on(kind, take);
}

/**
 * Loads modules beside the world. Some of them draw from chance while they are loaded, which happens once in this process, and must not
 * differ between the first simulation of a seed and the next one.
 */
export async function aside<T>(load: () => T | Promise<T>): Promise<T> {
  const present = world();
  await new Promise((resolve) => void real.setImmediate(resolve)); // the present task goes on until it has to wait
  enter(new World(0));
  try {
    return await load();
  } finally {
    enter(present);
  }
}

/** Loads a module of the product into the graph of a process. */
export function moduleOf<Module>(name: string, { graph }: Life): Promise<Module> {
  const url = `${import.meta.resolve(name)}?${GRAPH}=${graph}`;
  return world().stopWorldFor(() => aside(() => import(url) as Promise<Module>));
}

/** Handles an uncaught error. While the world runs, it is an error of the simulated server; otherwise it ends this program. */
function take(error: unknown): void {
  if (world().isRunning) world().uncaught(error);
  else {
    process.stderr.write(`${textOf(error)}\n`);
    process.exit(1);
  }
}

/** Gives the state of all loaded modules of a graph its first values, as a new process has it. */
export function beginLife(graph = ''): void {
  for (const restart of restarts.get(graph) ?? []) restart();
}
