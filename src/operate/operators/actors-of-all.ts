/**
 * The actors of a workspace in all workers, for operators. Each worker returns the actors that it has in memory. The
 * first worker that is asked also returns the actors that every worker can read from the store.
 */

import type { WorkspaceId } from '#src/base/ids.ts';
import type { ActorPage } from '#src/contract/wire/actor.ts';
import type { ActorInspection, ActorListing } from '#src/http/routes/actors.ts';
import { mergePages } from '#src/runtime/actors/actor-list.ts';
import type { ActorRuntime } from '#src/runtime/actors/runtime.ts';
import type { Cluster } from '#src/runtime/homes/cluster.ts';
import type { Store } from '#storage/store.ts';
import { askWorkers } from './ask-workers.ts';

interface ListQuestion {
  readonly workspaceId: WorkspaceId;
  readonly query: ActorListing;
}

/** Returns the function that lists the actors of all workers. Registers this worker's answer to the others. */
export function actorsOfAll(
  actors: Pick<ActorRuntime, 'list' | 'detail' | 'chart'>,
  store: Pick<Store, 'durable'>,
  cluster: Pick<Cluster, 'size' | 'living' | 'askOthers' | 'onAsked'>,
): ActorInspection {
  cluster.onAsked('list-actors', async (payload) => {
    const { workspaceId, query } = payload as ListQuestion;
    const page = actors.list(workspaceId, query, 'in-memory');
    await store.durable(); // no response may show data that a crash could undo
    return page;
  });
  return {
    async list(workspaceId, query) {
      const own = actors.list(workspaceId, query);
      const question: ListQuestion = { workspaceId, query };
      const { answers, ...silent } = await askWorkers<ActorPage>(cluster, 'list-actors', question);
      return answers.length === 0
        ? { ...own, ...silent }
        : { ...mergePages([own, ...answers], query.limit), ...silent };
    },
    detail: (kind, id) => actors.detail(kind, id),
    chart: (machine) => actors.chart(machine),
  };
}
