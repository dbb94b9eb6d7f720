import type { Principal } from '#src/core/principal.ts';
import type { NotebookSessionList } from '#src/notebook/notebook-session-list.ts';
import type { RunRepository } from '#src/runs/run-repository.ts';
import type { Environments } from '#src/sessions/environments.ts';
import {
  EnvironmentListQuery,
  NotebookSessionListQuery,
  NotebookSessionSummarySchema,
  RunListQuery,
} from '#src/wire/finding.ts';
import { RunSchema } from '#src/wire/run.ts';
import { EnvironmentSchema } from '#src/wire/session.ts';
import { pageSchema } from '#src/wire/shape.ts';
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
      method: 'GET',
      path: '/api/v3/runs',
      operationId: 'listRuns',
      summary: 'List the runs of the workspace',
      description:
        'Executions of notebooks, and the prompts of the conversations that you can read. Oldest first unless the order ' +
        'says otherwise. A page may have fewer items than `limit` and still a `nextCursor`.',
      tags: ['Runs'],
      access: { action: 'run.read' },
      readsStoreOnly: true,
      query: RunListQuery,
      responses: { 200: { description: 'A page of runs.', schema: pageSchema('RunPage', RunSchema) } },
      errors: ['invalid_cursor'],
      handle: async ({ principal, query, signal }) => {
        const mayRead = (run: RunIndexEntry) => mayReadRun(principal, run);
        return encodedJson(await runs.reader.list(principal.workspaceId, { ...query, signal }, mayRead));
      },
    }),
    defineRoute({
      method: 'GET',
      path: '/api/v3/notebook-sessions',
      operationId: 'listNotebookSessions',
      summary: 'List notebook sessions, by the time at which they were last opened',
      description: 'Unlike reading a session, listing starts no kernel.',
      tags: ['Notebook sessions'],
      access: { action: 'session.read' },
      readsStoreOnly: true,
      query: NotebookSessionListQuery,
      responses: {
        200: {
          description: 'A page of sessions.',
          schema: pageSchema('NotebookSessionPage', NotebookSessionSummarySchema),
        },
      },
      errors: ['invalid_cursor'],
      handle: async ({ principal, query, signal }) =>
        ok(await sessions.page(principal.workspaceId, { ...query, signal })),
    }),
    defineRoute({
      method: 'GET',
      path: '/api/v3/execution-environments',
      operationId: 'listExecutionEnvironments',
      summary: 'List execution environments, by the time at which they were created',
      tags: ['Execution environments'],
      access: { action: 'environment.read' },
      readsStoreOnly: true,
      query: EnvironmentListQuery,
      responses: {
        200: {
          description: 'A page of environments.',
          schema: pageSchema('EnvironmentPage', EnvironmentSchema),
        },
      },
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
