/**
 * Makes the app of a worker a part of its cluster: requests reach it from other workers, and a slot leaves it when the slot is
 * empty.
 */

import type { AsyncDisposableStack } from '#src/base/async/async-disposable-stack.ts';
import { INHERITED } from '#src/cluster/messages.ts';
import type { MirrorMaker } from '#src/cluster/peers/feeds.ts';
import type { Peers } from '#src/cluster/peers/peers.ts';
import type { ClusterChannel } from '#src/cluster/worker/channel.ts';
import type { Forwarding } from '#src/http/edge/http-context.ts';
import { slotOfTicket } from '#src/people/auth/event-tickets.ts';
import { slotOf } from '#src/runtime/homes/slots.ts';
import type { PlaneContext } from '#src/runtime/sessions/plane-context.ts';

/** A worker of a cluster. */
export interface ClusterMember {
  readonly channel: ClusterChannel;
  readonly peers: Peers;
}

export interface JoinOptions {
  readonly member: ClusterMember;
  /** The planes that hold state of sessions in memory, in addition to actors. */
  readonly planes: readonly { leaveTo(isElsewhere: (workspaceId: string, id: string) => boolean): void }[];
  /** Yields the slots with work in progress that no request and no actor has, such as the end of a job's attempt. */
  readonly busySlots: () => Iterable<number>;
  readonly makeMirror: MirrorMaker;
}

/** Returns the forwarder of requests for the HTTP server. `stack` ends the connections to the other workers. */
export function joinCluster(
  { store, runtime }: Pick<PlaneContext, 'store' | 'runtime'>,
  { member: { channel, peers }, planes, busySlots, makeMirror }: JoinOptions,
  stack: AsyncDisposableStack,
): Forwarding {
  stack.use(peers);
  peers.onFeed(makeMirror);
  const elsewhere = (slot: number) => (peers.ownsSlot(slot) ? undefined : slot);
  return {
    refresh: () => store.refresh(),
    elsewhere: (workspaceId, id) => elsewhere(slotOf(workspaceId, id)),
    elsewhereByTicket(ticket) {
      const slot = slotOfTicket(ticket);
      return slot === undefined ? undefined : elsewhere(slot);
    },
    forward: (head, body, events) => peers.forward(head, body, events),
    async join(handle, busyHomes) {
      channel.onReleaseAsked(async (count) => {
        const homes = [...runtime.activeHomes(), ...busyHomes()];
        const busy = new Set([
          ...homes.map(({ workspaceId, id }) => slotOf(workspaceId, id)),
          ...busySlots(),
        ]);
        const released = peers.release(count, (slot) => !busy.has(slot));
        await store.durable();
        // A newer table may have left the slots here.
        const slots = new Set(released.filter((slot) => !peers.ownsSlot(slot)));
        for (const leaving of [runtime, ...planes])
          leaving.leaveTo((workspaceId, id) => slots.has(slotOf(workspaceId, id)));
        return [...slots];
      });
      channel.onTable((table) => peers.useTable(table));
      peers.useTable(channel.table);
      await peers.listen(handle);
      return {
        port: await channel.join(),
        descriptor: INHERITED.listener,
        proxies: channel.servesProxies ? INHERITED.proxies : undefined,
      };
    },
  };
}
