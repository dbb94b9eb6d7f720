/** The kernels on nodes, and which of them the server has ordered to end. */
import type { Life, World } from '../world/world.ts';

/** Graphs of modules are named `n1`, `n2` and so on where they are those of nodes. */
const NODE = /^n\d$/;

interface Known {
  readonly lives: Map<string, Life>;
  readonly doomed: Set<Life>;
}

const known = new WeakMap<World, Known>();

export function isNode(graph: string | undefined): boolean {
  return graph !== undefined && NODE.test(graph);
}

function knownIn(of: World): Known {
  const found = known.get(of) ?? { lives: new Map<string, Life>(), doomed: new Set<Life>() };
  known.set(of, found);
  return found;
}

/** A node has got the order of this kernel. */
export function noteNodeKernel(of: World, id: string, life: Life): void {
  knownIn(of).lives.set(id, life);
}

/** The server has ordered the end of this kernel; the order may still be on its way. */
export function noteDoom(of: World, id: string): void {
  const { lives, doomed } = knownIn(of);
  const life = lives.get(id);
  if (life !== undefined) doomed.add(life);
}

/** Returns whether a kernel lives on a node although the server has not ordered its end. */
export function livesUnasked(of: World, life: Life): boolean {
  const { lives, doomed } = knownIn(of);
  return !life.isOver && !doomed.has(life) && [...lives.values()].includes(life);
}
