/** What actors refused since the console was opened. It outlives the view, so that coming back loses nothing. */
import { signal } from '@preact/signals';
import { useClient, useWhileSeen } from './data.ts';
import { place } from './route.ts';

export interface Refusal {
  readonly key: string;
  readonly time: string;
  readonly kind: string;
  readonly id: string;
  /** The type of the event. */
  readonly event: string;
  readonly code: string;
  readonly title: string;
  readonly advice: string | null;
}

const MAX_KEPT = 100;

/** By workspace, the last first. */
const kept = signal<Readonly<Record<string, readonly Refusal[]>>>({});

/** Returns the refusals of the workspace and follows its actors while the component is shown. */
export function useRefusals(): readonly Refusal[] {
  const client = useClient();
  const { workspaceId } = place.value;
  useWhileSeen(
    async (gone) => {
      for await (const { type, time, data } of client.followActors({ signal: gone })) {
        if (type !== 'actor.refused') continue;
        const before = kept.peek()[workspaceId] ?? [];
        const key = `${time} ${before.length} ${data.id}`;
        kept.value = {
          ...kept.peek(),
          [workspaceId]: [{ key, time, ...data }, ...before].slice(0, MAX_KEPT),
        };
      }
    },
    [workspaceId],
  );
  return kept.value[workspaceId] ?? [];
}
