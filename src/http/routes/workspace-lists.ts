import type { Principal } from '#src/core/principal.ts';
import type { NotebookSessionList } from '#src/notebook/notebook-session-list.ts';
import type { RunRepository } from '#src/runs/run-repository.ts';
import type { Environments } from '#src/sessions/environments.ts';
import { OPERATIONS } from '#src/wire/operations/table.ts';
import type { RunIndexEntry } from '#storage/runs.ts';
import { encodedJson, ok } from '../reply/reply.ts';
import { defineRoute, type Route } from '../route.ts';
import type { ShownEnvironment } from './execution-environments.ts';

export interface WorkspaceLists {
  readonly runs: RunRepository;
  readonly sessions: NotebookSessionList;
  readonly environments: Environments;
  readonly shownEnvironment: ShownEnvironment;
  /** Returns whether a run may appear in the lists of this caller. */
  readonly mayReadRun: (principal: Principal, run: RunIndexEntry) => boolean;
}

/** What there is in a workspace. These lists restore and wake nothing. */
export function workspaceListRoutes(lists: WorkspaceLists): readonly Route[] {
  const { runs, sessions, environments, shownEnvironment, mayReadRun } = lists;
  return [
    defineRoute({
      ...OPERATIONS.listRuns,
      summary: 'List the runs of the workspace',
      description:
        'Executions of notebooks, and the prompts of the conversations that you can read. Oldest first unless the order ' +
        'says otherwise. A page may have fewer items than `limit` and still a `nextCursor`.',
      tags: ['Runs'],
      access: { action: 'run.read' },
      readsStoreOnly: true,
      errors: ['invalid_cursor'],
      handle: async ({ principal, query, signal }) => {
        const mayRead = (run: RunIndexEntry) => mayReadRun(principal, run);
        return encodedJson(await runs.reader.list(principal.workspaceId, { ...query, signal }, mayRead));
      },
    }),
    defineRoute({
      ...OPERATIONS.listNotebookSessions,
      summary: 'List notebook sessions, by the time at which they were last opened',
      description: 'Unlike reading a session, listing starts no kernel.',
      tags: ['Notebook sessions'],
      access: { action: 'session.read' },
      readsStoreOnly: true,
      errors: ['invalid_cursor'],
      handle: async ({ principal, query, signal }) =>
        ok(await sessions.page(principal.workspaceId, { ...query, signal })),
    }),
    defineRoute({
      ...OPERATIONS.listExecutionEnvironments,
      summary: 'List execution environments, by the time at which they were created',
      tags: ['Execution environments'],
      access: { action: 'environment.read' },
      readsStoreOnly: true,
      errors: ['invalid_cursor'],
      async handle({ principal, query, signal }) {
        const page = await environments.list(principal.workspaceId, { ...query, signal });
        return ok({
          ...page,
          items: page.items.map((environment) => shownEnvironment(principal, environment)),
        });
      },
    }),
  ];
}
