/** Makes this process one that simulates: its globals are the world's, and modules of the product are loaded through `hooks.ts`. */
import { register } from 'node:module';
import type { HookData, ModuleEdit } from './hooks.ts';
import { installGlobals } from './world/globals.ts';
import { enter, textOf, World, world } from './world/world.ts';

declare global {
  /** Stops the world until the module is there. */
  var stopWorldFor: typeof World.prototype.stopWorldFor;
  /** Registers what a new process would do with the state of one module. */
  var atEachLife: (restart: () => void) => void;
}

const restarts: (() => void)[] = [];

const STAND_INS = {
  '#src/base/fault-points.ts': 'fault-points',
  'node:crypto': 'crypto',
  'node:fs': 'fs',
  'node:fs/promises': 'fs-promises',
  'node:net': 'net',
  'node:timers/promises': 'timers-promises',
  koffi: 'koffi',
  lmdb: 'lmdb',
  undici: 'undici',
};

/** Begins. The product is not loaded before; `edits` are made in its modules. */
export function simulateHere(edits: readonly ModuleEdit[] = []): void {
  const urlOf = (path: string) => new URL(path, import.meta.url).href;
  const standIns = Object.entries(STAND_INS).map(([name, file]) => [name, urlOf(`stand-ins/${file}.js`)]);
  const data: HookData = {
    root: urlOf('../../'),
    others: [urlOf('../'), urlOf('../../bench/')],
    standIns: Object.fromEntries(standIns) as Record<string, string>,
    edits,
  };
  register('./hooks.js', import.meta.url, { data });
  globalThis.stopWorldFor = (act) => world().stopWorldFor(act);
  globalThis.atEachLife = (restart) => void restarts.push(restart);
  enter(new World(0));
  installGlobals();
  for (const kind of ['uncaughtException', 'unhandledRejection']) process.on(kind, take);
}

/** Handles an uncaught error. While the world runs, it is an error of the simulated server; otherwise it ends this program. */
function take(error: unknown): void {
  if (world().isRunning) world().uncaught(error);
  else {
    process.stderr.write(`${textOf(error)}\n`);
    process.exit(1);
  }
}

/** Gives the state of all loaded modules its first values, as a new process has it. */
export function beginLife(): void {
  for (const restart of restarts) restart();
}
