/** The kernel host of a primary: a scripted one, which the simulation can find. */
import type { StartZygote } from '#src/confined/processes/host/zygote-process.ts';
import { SimulatedZygote } from '../kernel/simulated-zygote.ts';
import { type World, world } from '../world/world.ts';

const zygotes = new WeakMap<World, SimulatedZygote[]>();

/** Returns the kernel hosts of a world, those that have ended included. */
export function zygotesOf(of: World): SimulatedZygote[] {
  const all = zygotes.get(of) ?? [];
  zygotes.set(of, all);
  return all;
}

const start: StartZygote = (options) =>
  SimulatedZygote.starter((zygote) => zygotesOf(world()).push(zygote))(options);

export const ZygoteProcess = { start };
