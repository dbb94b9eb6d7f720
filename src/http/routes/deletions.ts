import type { ConversationDeletion } from '#src/agent/conversation-deletion.ts';
import type { RunDeletion } from '#src/runs/run-deletion.ts';
import type { RunReader } from '#src/runs/run-reader.ts';
import { OPERATIONS } from '#src/wire/operations/table.ts';
import { noContent } from '../reply/reply.ts';
import { defineRoute, type Route } from '../route.ts';
import type { GuardRun } from './run-waiting.ts';
import { homeOfRun } from './runs.ts';

export interface Deletions {
  readonly runs: Pick<RunReader, 'homeOf'>;
  readonly deletion: RunDeletion;
  readonly conversations: ConversationDeletion;
  readonly guard: GuardRun;
}

/** What deletes runs, their assets, and conversations for ever. */
export function deletionRoutes({ runs, deletion, conversations, guard }: Deletions): readonly Route[] {
  return [
    defineRoute({
      ...OPERATIONS.deleteRun,
      summary: 'Delete a run',
      description:
        'Deletes the run with its output and its assets. It must have ended; a run that is `stale` is cancelled first. The ' +
        'run of a prompt can be deleted by the owner of the conversation and by owners of the workspace; the entries of the ' +
        'conversation stay.',
      tags: ['Runs'],
      access: { action: 'run.delete' },
      homeOf: homeOfRun(runs),
      errors: ['run_in_progress', 'conversation_read_only'],
      handle({ principal, params }) {
        guard(principal, params.runId, 'delete');
        deletion.delete(principal.workspaceId, params.runId);
        return noContent();
      },
    }),
    defineRoute({
      ...OPERATIONS.deleteRunAsset,
      summary: 'Delete an asset of a run',
      description:
        'The run must have ended. It stays, and still names the asset, which can no longer be read.',
      tags: ['Runs'],
      access: { action: 'run.delete' },
      homeOf: homeOfRun(runs),
      errors: ['run_in_progress', 'conversation_read_only'],
      handle({ principal, params }) {
        guard(principal, params.runId, 'delete');
        deletion.deleteAsset(principal.workspaceId, params.runId, params.assetId);
        return noContent();
      },
    }),
    defineRoute({
      ...OPERATIONS.deleteConversation,
      summary: 'Delete a conversation',
      description:
        'Closes the session and deletes the conversation for ever: its entries, its grants, and its prompts with their ' +
        'outputs and assets. Its owner and owners of the workspace may do so, while no prompt runs in it.',
      tags: ['Agent sessions'],
      access: { action: 'agent.delete' },
      errors: ['session_busy', 'conversation_read_only'],
      handle({ principal, params }) {
        conversations.delete(principal, params.sessionId);
        return noContent();
      },
    }),
  ];
}
