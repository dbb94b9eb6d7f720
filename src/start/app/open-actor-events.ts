/**
 * Opens the event streams of actors. A stream is kept in the home of its workspace, and every other worker reports to
 * that home the changes of its own actors of the workspace, as long as the stream has followers.
 */

import type { AsyncDisposableStack } from '#src/base/async/async-disposable-stack.ts';
import { unawaited } from '#src/base/async/unawaited.ts';
import type { WorkspaceId } from '#src/base/ids.ts';
import type { ActorCount } from '#src/contract/wire/actor.ts';
import { askWorkers } from '#src/operate/operators/ask-workers.ts';
import { ActorEvents, type ActorStream } from '#src/runtime/actors/actor-events.ts';
import type { ActorInterest } from '#src/runtime/actors/actor-interest.ts';
import { mergeCounts } from '#src/runtime/actors/actor-list.ts';
import { ActorReporter, type ActorReports } from '#src/runtime/actors/actor-reporter.ts';
import type { Cluster, WorkersChange } from '#src/runtime/homes/cluster.ts';
import type { PlaneContext } from '#src/runtime/sessions/plane-context.ts';

/** A request to another worker for reports. */
interface Following {
  readonly worker: number;
  readonly incarnation: string;
  readonly interests: readonly ActorInterest[];
}

/** Returns the streams, and the reporter to other workers. They are closed with `stack`. */
export function openActorEvents(
  { cluster, runtime, store }: Pick<PlaneContext, 'cluster' | 'runtime' | 'store'>,
  makeStream: () => ActorStream,
  stack: Pick<AsyncDisposableStack, 'use'>,
): { readonly actorEvents: ActorEvents; readonly actorReporter: ActorReporter } {
  const events = stack.use(
    new ActorEvents({ runtime, store }, makeStream, cluster.size === 1 ? undefined : elsewhereBy(cluster)),
  );
  const reporter = stack.use(
    new ActorReporter(
      runtime.watch,
      store,
      async (worker, reports) => (await cluster.ask(worker, 'actor-reports', reports)) === true,
    ),
  );
  cluster.onAsked('follow-actors', (payload) => {
    const { worker, incarnation, interests } = payload as Following;
    // A dead worker's last question may be read after its end is known; reports to it would never end.
    if (cluster.livesElsewhere(incarnation)) reporter.follow(worker, interests);
  });
  cluster.onAsked('actor-reports', (payload) => {
    events.take(payload as ActorReports);
    return true;
  });
  cluster.onAsked('count-actors', async (payload) => {
    const counts = runtime.countsOf(payload as WorkspaceId, 'in-memory');
    await store.durable(); // no follower may see changes that a crash could undo
    return counts;
  });
  cluster.onWorkersChanged((change) => adapt(change, cluster, events, reporter));
  return { actorEvents: events, actorReporter: reporter };
}

function elsewhereBy(cluster: Cluster) {
  return {
    follow(interests: readonly ActorInterest[]): void {
      const { worker, incarnation = '' } = cluster;
      const following: Following = { worker, incarnation, interests };
      unawaited(cluster.askOthers('follow-actors', following), 'open-actor-events: the question for events');
    },
    // Questions on one connection arrive in order, so a worker that has answered this question is
    // already reporting.
    async countsOf(workspaceId: WorkspaceId): Promise<readonly ActorCount[]> {
      return mergeCounts((await askWorkers<ActorCount[]>(cluster, 'count-actors', workspaceId)).answers);
    },
  };
}

function adapt(
  { joined, gone }: WorkersChange,
  cluster: Cluster,
  events: ActorEvents,
  reporter: ActorReporter,
): void {
  for (const worker of gone) reporter.forget(worker);
  // Actors of dead workers have left memory, and their unreported changes are lost.
  if (gone.length > 0) events.restart();
  const { workspaces } = events;
  if (joined.length === 0 || workspaces.size === 0) return;
  events.followElsewhere();
  for (const workspaceId of workspaces) {
    for (const worker of joined) {
      // Actors that came into its memory in the meantime may not have been reported.
      const restarted = cluster.ask(worker, 'count-actors', workspaceId).then((counts) => {
        if ((counts as readonly ActorCount[] | undefined)?.length) events.restart(workspaceId);
      });
      unawaited(restarted, 'open-actor-events: the count of a new worker');
    }
  }
}
