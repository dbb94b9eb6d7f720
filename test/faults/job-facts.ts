/** Facts about the jobs of servers that are killed. */
import assert from 'node:assert/strict';
import { ConnectionError } from '#src/contract/client/api-error.ts';
import type { Client } from '#src/contract/client/client.ts';
import type { Job, Occurrence } from '#src/contract/wire/job.ts';
import { processFact, type WorkerFact } from '#test/support/processes.ts';

/** Requires one record for each instant from the creation of the job until its last occurrence. */
export function requireEachInstant(
  { createdAt }: Pick<Job, 'createdAt'>,
  occurrences: readonly Occurrence[],
  everyMs: number,
): void {
  const instants = occurrences.flatMap(({ dueAt, lastDueAt = dueAt }) => {
    const [first, last] = [Date.parse(dueAt), Date.parse(lastDueAt)];
    return Array.from({ length: (last - first) / everyMs + 1 }, (_, i) => first + i * everyMs);
  });
  const firstMs = Date.parse(createdAt) + everyMs;
  assert.deepEqual(
    instants,
    instants.map((_, i) => firstMs + i * everyMs),
  );
}

/** Each occurrence has at most one run, because nothing is attempted again. Each run is over, and says the same as its occurrence. */
export async function requireRuns(
  client: Client,
  jobId: string,
  occurrences: readonly Occurrence[],
): Promise<void> {
  const byId = new Map(occurrences.map((occurrence) => [occurrence.id, occurrence]));
  const seen = new Set<string>();
  for (let after: string | undefined; ; ) {
    const { items, nextCursor } = await client.runs.list({ limit: 100, after, metadata: `job=${jobId}` });
    for (const { id, status, metadata } of items) {
      const occurrence = byId.get(metadata?.occurrence ?? '');
      assert.equal(occurrence?.runId, id);
      assert.ok(!seen.has(occurrence.id), 'the occurrence has one run');
      seen.add(occurrence.id);
      const isLost = occurrence.reason?.code === 'server_stopped';
      assert.equal(isLost ? 'cancelled' : occurrence.status, status);
    }
    if (nextCursor === null) return;
    after = nextCursor;
  }
}

/** Resolves with undefined when the connection has ended with a worker. */
export function unlessCut<T>(answer: Promise<T>): Promise<T | undefined> {
  return answer.catch((error: unknown) => {
    if (error instanceof ConnectionError) return undefined;
    throw error;
  });
}

export async function occurrencesOf({ jobs }: Client, jobId: string): Promise<Occurrence[]> {
  const all: Occurrence[] = [];
  for (let after: string | undefined; ; ) {
    const { items, nextCursor } = await jobs.occurrences(jobId, { limit: 100, after });
    all.push(...items);
    if (nextCursor === null) return all;
    after = nextCursor;
  }
}

export function isGone({ pid, startedAt }: WorkerFact): boolean {
  return processFact(pid)?.startedAt !== startedAt;
}
