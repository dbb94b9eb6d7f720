/** The kernels of a workspace in all workers. Each worker answers for the kernels of its own sessions. */

import type { WorkspaceId } from '#src/base/ids.ts';
import type { ServerObservation } from '#src/http/routes/server.ts';
import type { Cluster } from '#src/runtime/homes/cluster.ts';
import { askWorkers } from './ask-workers.ts';
import type { KernelSample, KernelSampler } from './kernel-usage.ts';

interface Question {
  readonly workspaceId: string;
  readonly choice: { readonly sessionId?: string; readonly limit?: number };
}

type Asking = Pick<Cluster, 'size' | 'living' | 'askOthers' | 'onAsked'>;

/** Returns the function that lists the kernels of all workers. Registers this worker's answer to the others. */
export function kernelsOfAll(
  sampler: Pick<KernelSampler, 'sample'>,
  memoryLimitBytes: number | null,
  cluster: Asking,
): ServerObservation['kernels'] {
  const own = async ({ workspaceId, choice: { sessionId, limit } }: Question): Promise<KernelSample> => {
    const { sampledAt, kernels } = await sampler.sample();
    const chosen = kernels.filter(
      (kernel) =>
        kernel.workspaceId === workspaceId && (sessionId === undefined || kernel.sessionId === sessionId),
    );
    return { sampledAt, kernels: chosen.slice(0, limit) };
  };
  cluster.onAsked('list-kernels', (payload) => own(payload as Question));
  return async (workspaceId, choice) => {
    const question: Question = { workspaceId, choice };
    const [mine, { answers, ...silent }] = await Promise.all([
      own(question),
      askWorkers<KernelSample>(cluster, 'list-kernels', question),
    ]);
    const samples = [mine, ...answers];
    const items = samples.flatMap(({ kernels }) => kernels).sort((a, b) => b.memoryBytes - a.memoryBytes);
    const [sampledAt = mine.sampledAt] = samples.map((sample) => sample.sampledAt).sort();
    return { sampledAt, memoryLimitBytes, items: items.slice(0, choice.limit), ...silent };
  };
}

/** Returns the function that names the sessions of a workspace that have a kernel, in all workers that answer. */
export function sessionsOfAll(
  own: (workspaceId: WorkspaceId) => readonly string[],
  cluster: Asking,
): (workspaceId: WorkspaceId) => Promise<readonly string[]> {
  cluster.onAsked('sessions-with-kernels', (payload) => own(payload as WorkspaceId));
  return async (workspaceId) => {
    const others = await askWorkers<readonly string[]>(cluster, 'sessions-with-kernels', workspaceId);
    return [...own(workspaceId), ...others.answers.flat()];
  };
}
