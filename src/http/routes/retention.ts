import { OPERATIONS } from '#src/contract/wire/operations/table.ts';
import { requireServerScope } from '../handlers/server-scope.ts';
import { noContent } from '../reply/reply.ts';
import { defineRoute, type Route } from '../route.ts';

/** The deletion of old records, which the whole server shares. */
export interface RetentionControl {
  /** Allows deletions by the clock of this machine. Resolves once the decision is on disk. */
  confirmClock(): Promise<void>;
}

/** The decisions of operators about the deletion of old records. */
export function retentionRoutes(retention: RetentionControl): readonly Route[] {
  return [
    defineRoute({
      ...OPERATIONS.confirmClock,
      summary: 'Confirm that the clock of the server is right, so that old records are deleted',
      description:
        'While the clock is more than 48 hours past the newest record and the last deletion of old records, the server deletes no old records, ' +
        'and `GET /readyz` has a warning. After this operation, old records are deleted within an hour. The operation needs a token ' +
        'with the scope `server:manage` that is not bound to a workspace.',
      tags: ['Operations'],
      access: 'token',
      errors: ['missing_scope'],
      checkAccess: ({ holder }) => requireServerScope(holder, ['server:manage'], 'confirm the clock'),
      async handle({ holder }) {
        requireServerScope(holder, ['server:manage'], 'confirm the clock');
        await retention.confirmClock();
        return noContent();
      },
    }),
  ];
}
