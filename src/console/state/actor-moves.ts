/** What actors do, as it happens: calls are joined to one for each frame, however much happens. */
import type { ActorStreamEvent } from '#src/wire/actor.ts';
import { useClient, useWhileSeen } from './data.ts';
import { place } from './route.ts';

export type ActorMove = Exclude<ActorStreamEvent, { readonly type: `actors.${string}` }>;

/** The last that is known of an actor since the call before, by `kind/id`. */
type ActorMoves = ReadonlyMap<string, ActorMove>;

/** Calls `onMoves` while the component is shown, and `onGap` when something may have been missed. */
export function useActorMoves(onMoves: (moves: ActorMoves) => void, onGap: () => void): void {
  const client = useClient();
  useWhileSeen(
    async (signal) => {
      let moves = new Map<string, ActorMove>();
      const show = () => {
        const shown = moves;
        moves = new Map();
        if (!signal.aborted) onMoves(shown);
      };
      for await (const event of client.followActors({ signal })) {
        if (event.type === 'actors.snapshot') {
          if (event.resumed !== true) onGap();
        } else if (event.type !== 'actors.replayed' && event.type !== 'actors.resync-required') {
          if (moves.size === 0) requestAnimationFrame(show);
          moves.set(`${event.data.kind}/${event.data.id}`, event);
        }
      }
    },
    [place.value.workspaceId],
  );
}
