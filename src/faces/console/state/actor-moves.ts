/**
 * The transitions of actors, as they happen. Listeners are called at most once for each frame of the screen, with all transitions
 * since.
 */
import type { ActorStreamEvent } from '#src/contract/wire/actor.ts';
import { useClient } from './data.ts';
import { place } from './route.ts';
import { useWhileSeen } from './while-seen.ts';

export type ActorMove = Extract<ActorStreamEvent, { readonly type: 'actor.moved' | 'actor.left' }>;

/** The last known move of an actor since the previous call, by `kind/id`. */
type ActorMoves = ReadonlyMap<string, ActorMove>;

/**
 * While the component is shown, calls `onMoves` with the transitions of actors of a kind, and `onGap` when transitions may have
 * been missed. An empty kind means all kinds.
 */
export function useActorMoves(kind: string, onMoves: (moves: ActorMoves) => void, onGap: () => void): void {
  const client = useClient();
  useWhileSeen(
    async (signal) => {
      let moves = new Map<string, ActorMove>();
      const show = () => {
        const shown = moves;
        moves = new Map();
        if (!signal.aborted) onMoves(shown);
      };
      for await (const event of client.followActors({ ...(kind !== '' && { kind }), signal })) {
        if (event.type === 'actors.snapshot') {
          if (event.resumed !== true) onGap();
        } else if (event.type === 'actor.moved' || event.type === 'actor.left') {
          if (moves.size === 0) requestAnimationFrame(show);
          moves.set(`${event.data.kind}/${event.data.id}`, event);
        }
      }
    },
    [place.value.workspaceId, kind],
  );
}
