/**
 * One actor, which is loaded again when its stream reports that the actor has moved, refused a command or left.
 */
import { useRef } from 'preact/hooks';
import { ApiError } from '#src/contract/client/api-error.ts';
import type { ActorDetail } from '#src/contract/wire/actor.ts';
import { UNTOLD_EVERY_MS, useClient, useData } from './data.ts';
import type { Data } from './loaded.ts';
import { useWhileSeen } from './while-seen.ts';

const MIN_GAP_MS = 250;

/** Returns the actor as it is now, for as long as the component is shown. */
export function useActor(kind: string, id: string): Data<ActorDetail> {
  const actor = useData((client, signal) => client.actor(kind, id, { signal }), [kind, id]);
  useChangesOf(kind, id, actor.reload);
  return actor;
}

/**
 * Calls `onChange` when the actor may have changed. The server sends changes only to owners of the workspace; for other users
 * `onChange` is called at intervals.
 */
export function useChangesOf(kind: string, id: string, onChange: () => void): void {
  const client = useClient();
  const latest = useRef(onChange);
  latest.current = onChange;
  useWhileSeen(
    async (gone, isAgain) => {
      let timer: ReturnType<typeof setTimeout> | undefined;
      gone.addEventListener('abort', () => clearTimeout(timer));
      let isFirst = !isAgain;
      try {
        for await (const event of client.followActors({ kind, id, signal: gone })) {
          if (event.type === 'actors.replayed' || event.type === 'actors.resync-required') continue;
          // The first snapshot brings no news, because the actor was loaded when the component appeared.
          const isKnown = event.type === 'actors.snapshot' && (isFirst || event.resumed === true);
          isFirst = false;
          if (isKnown) continue;
          timer ??= setTimeout(() => {
            timer = undefined;
            latest.current();
          }, MIN_GAP_MS);
        }
      } catch (error) {
        if (gone.aborted || !(error instanceof ApiError) || error.status !== 403) throw error;
        const ask = () => {
          latest.current();
          timer = setTimeout(ask, UNTOLD_EVERY_MS);
        };
        timer = setTimeout(ask, UNTOLD_EVERY_MS);
      }
    },
    [kind, id],
  );
}
