/** The types of the client's calls and of handlers follow from the table of operations. Nothing runs this: the compiler checks it. */
import type { Connection } from '#src/contract/client/connection.ts';
import { bytesCallOf, callOf, operation, pagesOf, taggedCallOf } from '#src/contract/client/operation.ts';
import { OPERATIONS } from '#src/contract/wire/operations/table.ts';
import { pathOf } from '#src/contract/wire/paths.ts';
import { accepted, ok } from '#src/http/reply/reply.ts';
import { defineRoute } from '#src/http/route.ts';

export function refusedRequests(): void {
  operation('getRun', { params: { runId: 'r1' }, query: { wait: 5 } });
  // @ts-expect-error no operation has this id
  operation('getRuns', {});
  // @ts-expect-error the path has another parameter
  operation('getRun', { params: { sessionId: 's1' } });
  // @ts-expect-error the path has a parameter
  operation('getRun', {});
  // @ts-expect-error the query has no such member
  operation('getRun', { params: { runId: 'r1' }, query: { waits: 5 } });
  // @ts-expect-error the body lacks its prompt
  operation('submitPrompt', { params: { sessionId: 's1' }, body: {} });
  // @ts-expect-error the body is missing
  operation('submitPrompt', { params: { sessionId: 's1' } });
  // @ts-expect-error it never answers with this status
  operation<'submitPrompt', 204>('submitPrompt', { params: { sessionId: 's1' }, body: { prompt: '' } });
  // @ts-expect-error the path has another parameter
  pathOf('followAgentSession', { runId: 'r1' });
}

export async function refusedCalls(connection: Connection): Promise<void> {
  // @ts-expect-error the body is missing
  callOf(connection, 'submitPrompt');
  // @ts-expect-error no operation has this id
  callOf(connection, 'getRuns');
  const { kind } = await taggedCallOf(connection, 'getRun')('r1', { ifNoneMatch: 'e' }).then(
    ({ value }) => value ?? { kind: undefined },
  );
  const known: 'notebook' | 'agent' | undefined = kind;
  await callOf(connection, 'deleteRunAsset')('r1', 'a1', { signal: undefined });
  // @ts-expect-error the path has two parameters
  await callOf(connection, 'deleteRunAsset')('r1');
  // @ts-expect-error the path has one parameter
  await callOf(connection, 'deleteRun')('r1', 'a1');
  // @ts-expect-error a read takes no idempotency key
  await callOf(connection, 'getMember')('u1', { idempotencyKey: 'k' });
  await callOf(connection, 'cancelRun')('r1', { idempotencyKey: known });
  await callOf(connection, 'deleteNotebook')('n1', { ifMatch: 'e' });
  // @ts-expect-error a run has no state that a deletion could name
  await callOf(connection, 'deleteRun')('r1', { ifMatch: 'e' });
  const { bytes } = await bytesCallOf(connection, 'getRunAsset')('r1', 'a1');
  bytes.at(0);
  const runs = pagesOf(connection, 'listRuns');
  await runs.list({ limit: 1, status: 'failed' });
  // @ts-expect-error the list has no such filter
  await runs.list({ name: 'failed' });
  // @ts-expect-error the list names its session
  await pagesOf(connection, 'listExecutions').list({ limit: 1 });
  for await (const run of runs.each()) run.id.at(0);
}

const described = { summary: 'Test', tags: [], access: { action: 'run.read' } } as const;

export const refusedHandlers = [
  defineRoute({
    ...OPERATIONS.cancelRun,
    ...described,
    handle: ({ params }) => accepted({ runId: params.runId, status: 'cancelling' }, '/'),
  }),
  defineRoute({
    ...OPERATIONS.cancelRun,
    ...described,
    // @ts-expect-error the path has another parameter
    handle: ({ params }) => accepted({ runId: params.sessionId, status: 'cancelling' }, '/'),
  }),
  defineRoute({
    ...OPERATIONS.cancelRun,
    ...described,
    // @ts-expect-error no response has this body
    handle: () => ok({ runId: 'r1' }),
  }),
];
