import { AppError } from '#src/core/errors.ts';
import type { NotebookDeletion } from '#src/notebook/notebook-deletion.ts';
import type { SavedNotebooks } from '#src/notebook/saved-notebooks.ts';
import { OPERATIONS } from '#src/wire/operations/table.ts';
import { requireState, tagged, unlessKnown, versionTag } from '../reply/entity-tag.ts';
import { encodedJson, noContent } from '../reply/reply.ts';
import { defineRoute, type Route } from '../route.ts';

const BODY_LIMIT_BYTES = 16 * 1024 * 1024;

/** Saved notebooks. */
export function notebookRoutes(notebooks: SavedNotebooks, deletion: NotebookDeletion): readonly Route[] {
  return [
    defineRoute({
      ...OPERATIONS.createNotebook,
      summary: 'Create a notebook',
      description: 'All members are optional: an empty object creates an empty notebook.',
      tags: ['Notebooks'],
      access: { action: 'notebook.write' },
      bodyLimitBytes: BODY_LIMIT_BYTES,
      errors: ['duplicate_cell'],
      async handle({ principal, body }) {
        const { document, json } = await notebooks.create(principal.workspaceId, body, principal.userId);
        const reply = encodedJson(json, 201, { location: `/api/v3/notebooks/${document.id}` });
        return tagged(reply, versionTag(document.updatedAt));
      },
    }),
    defineRoute({
      ...OPERATIONS.listNotebooks,
      summary: 'List notebooks, by the time at which they were created',
      tags: ['Notebooks'],
      access: { action: 'notebook.read' },
      readsStoreOnly: true,
      errors: ['invalid_cursor'],
      handle: async ({ principal, query, signal }) =>
        encodedJson(await notebooks.list(principal.workspaceId, { ...query, signal })),
    }),
    defineRoute({
      ...OPERATIONS.getNotebook,
      summary: 'Read a notebook',
      tags: ['Notebooks'],
      access: { action: 'notebook.read' },
      readsStoreOnly: true,
      handle({ principal, params, headers }) {
        const { json, updatedAt } = notebooks.served(principal.workspaceId, params.notebookId);
        return unlessKnown(encodedJson(json), versionTag(updatedAt), headers);
      },
    }),
    defineRoute({
      ...OPERATIONS.updateNotebook,
      summary: 'Change a notebook',
      description:
        'Replaces the members that are given: at least one of `title`, `serialization`, `datasourceSlugs` and ' +
        '`variables`. ' +
        '`expectedUpdatedAt` is the `updatedAt` of your last read. Refused while a session is open on the notebook: send ' +
        'changed code with an execution instead.',
      tags: ['Notebooks'],
      access: { action: 'notebook.write' },
      bodyLimitBytes: BODY_LIMIT_BYTES,
      errors: ['duplicate_cell', 'stale_update', 'session_open', 'precondition_failed'],
      async handle({ principal, params, headers, body: { expectedUpdatedAt, ...fields } }) {
        if (Object.keys(fields).length === 0) throw nothingToChange();
        const { workspaceId } = principal;
        const { notebookId } = params;
        const checkState = (updatedAt: string) => requireState(headers, () => versionTag(updatedAt));
        const changed = await notebooks.patch(workspaceId, notebookId, expectedUpdatedAt, fields, checkState);
        return tagged(encodedJson(changed.json), versionTag(changed.updatedAt));
      },
    }),
    defineRoute({
      ...OPERATIONS.deleteNotebook,
      summary: 'Delete a notebook',
      description:
        'Deletes the notebook for ever, with its session, its conversation, and its runs with their outputs and assets. Files of ' +
        'the workspace are not touched. Refused while a session is open on it.',
      tags: ['Notebooks'],
      access: { action: 'notebook.delete' },
      errors: ['session_open', 'precondition_failed'],
      handle({ principal, params, headers }) {
        deletion.delete(principal.workspaceId, params.notebookId, (updatedAt) =>
          requireState(headers, () => versionTag(updatedAt)),
        );
        return noContent();
      },
    }),
  ];
}

function nothingToChange(): AppError {
  const message = 'name at least one of title, serialization, datasourceSlugs, variables';
  return new AppError('invalid_request', `Nothing is to change: ${message}.`, {
    errors: [{ path: '', message }],
  });
}
