/** The types of the client's calls and of handlers follow from the table of operations. Nothing runs this: the compiler checks it. */
import { operation } from '#src/contract/client/operation.ts';
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
