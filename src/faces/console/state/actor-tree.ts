/** Actors as a tree: an environment, its sessions and agents, their runs and jobs. Hooks have no parent. */
import type { Actor } from '#src/contract/wire/actor.ts';
import { useData } from './data.ts';
import type { Data } from './loaded.ts';

export interface TreeNode {
  readonly actor: Actor;
  /** How many actors contain this one. */
  readonly depth: number;
}

export interface ActorTree {
  /**
   * Each actor is followed by the actors that it contains. Of actors with the same parent, the one that has been longest in its
   * state comes first.
   */
  readonly nodes: readonly TreeNode[];
  /** Whether some actors were not loaded. */
  readonly isCut: boolean;
}

const PAGE = 100;
const MAX_ACTORS = 1_000;
const KINDS = ['environment', 'notebook-session', 'agent-session', 'run', 'job', 'hook'];
/** The possible kinds of parents for each kind of actor. The parent of an actor is its first link to one of these kinds. */
const WITHIN: Readonly<Record<string, readonly string[]>> = {
  'notebook-session': ['environment'],
  'agent-session': ['notebook-session', 'environment'],
  run: ['notebook-session', 'agent-session'],
  job: ['notebook-session', 'agent-session'],
};

/** Returns the actors that mention `q`, as a tree, for as long as the component is shown. */
export function useActorTree(q: string): Data<ActorTree> {
  return useData(
    async (client, signal) => {
      const actors: Actor[] = [];
      let after: string | undefined;
      do {
        const page = await client.actors({ ...(q !== '' && { q }), after, limit: PAGE, signal });
        actors.push(...page.items);
        after = page.nextCursor ?? undefined;
      } while (after !== undefined && actors.length < MAX_ACTORS);
      return { nodes: treeOf(actors), isCut: after !== undefined };
    },
    [q],
    { follows: KINDS },
  );
}

function treeOf(actors: readonly Actor[]): TreeNode[] {
  const known = new Set(actors.map(keyOf));
  const within = new Map<string, Actor[]>();
  for (const actor of actors.toSorted((a, b) => (a.since < b.since ? -1 : 1))) {
    const wanted = WITHIN[actor.kind] ?? [];
    const links = wanted.flatMap((kind) => actor.links.filter((link) => link.kind === kind).map(keyOf));
    const outer = links.find((key) => known.has(key)) ?? '';
    within.set(outer, [...(within.get(outer) ?? []), actor]);
  }
  const below = (key: string, depth: number): TreeNode[] =>
    (within.get(key) ?? []).flatMap((actor) => [{ actor, depth }, ...below(keyOf(actor), depth + 1)]);
  return below('', 0);
}

function keyOf({ kind, id }: Pick<Actor, 'kind' | 'id'>): string {
  return `${kind}/${id}`;
}
