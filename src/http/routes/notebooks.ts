import { AppError } from '#src/core/errors.ts';
import type { SavedNotebooks } from '#src/notebook/saved-notebooks.ts';
import {
  NotebookChangeSchema,
  NotebookFieldsSchema,
  NotebookSchema,
  NotebookSummarySchema,
} from '#src/wire/notebook.ts';
import { PageQuery, pageSchema } from '#src/wire/shape.ts';
import { encodedJson, noContent } from '../reply/reply.ts';
import { defineRoute, type Route } from '../route.ts';

const BODY_LIMIT_BYTES = 16 * 1024 * 1024;

/** Saved notebooks. */
export function notebookRoutes(notebooks: SavedNotebooks): readonly Route[] {
  return [
    defineRoute({
      method: 'POST',
      path: '/api/v3/notebooks',
      operationId: 'createNotebook',
      summary: 'Create a notebook',
      description: 'All members are optional: an empty object creates an empty notebook.',
      tags: ['Notebooks'],
      access: { action: 'notebook.write' },
      bodyLimitBytes: BODY_LIMIT_BYTES,
      body: NotebookFieldsSchema,
      responses: {
        201: {
          description: 'The notebook was created.',
          schema: NotebookSchema,
          headers: { location: 'The path of the notebook.' },
        },
      },
      errors: ['duplicate_cell'],
      async handle({ principal, body }) {
        const { document, json } = await notebooks.create(principal.workspaceId, body);
        return encodedJson(json, 201, { location: `/api/v3/notebooks/${document.id}` });
      },
    }),
    defineRoute({
      method: 'GET',
      path: '/api/v3/notebooks',
      operationId: 'listNotebooks',
      summary: 'List notebooks, oldest first',
      tags: ['Notebooks'],
      access: { action: 'notebook.read' },
      query: PageQuery,
      responses: {
        200: {
          description: 'A page of summaries.',
          schema: pageSchema('NotebookPage', NotebookSummarySchema),
        },
      },
      errors: ['invalid_cursor'],
      handle: ({ principal, query }) =>
        encodedJson(notebooks.list(principal.workspaceId, query.after, query.limit)),
    }),
    defineRoute({
      method: 'GET',
      path: '/api/v3/notebooks/:notebookId',
      operationId: 'getNotebook',
      summary: 'Read a notebook',
      tags: ['Notebooks'],
      access: { action: 'notebook.read' },
      responses: { 200: { description: 'The saved notebook.', schema: NotebookSchema } },
      handle: ({ principal, params }) =>
        encodedJson(notebooks.json(principal.workspaceId, params.notebookId)),
    }),
    defineRoute({
      method: 'PATCH',
      path: '/api/v3/notebooks/:notebookId',
      operationId: 'updateNotebook',
      summary: 'Change a notebook',
      description:
        'Replaces the members that are given: at least one of `serialization`, `datasourceSlugs` and `variables`. ' +
        '`expectedUpdatedAt` is the `updatedAt` of your last read. Refused while a session is open on the notebook: send ' +
        'changed code with an execution instead.',
      tags: ['Notebooks'],
      access: { action: 'notebook.write' },
      bodyLimitBytes: BODY_LIMIT_BYTES,
      body: NotebookChangeSchema,
      responses: { 200: { description: 'The changed notebook.', schema: NotebookSchema } },
      errors: ['duplicate_cell', 'stale_update', 'session_open'],
      async handle({ principal, params, body: { expectedUpdatedAt, ...fields } }) {
        if (Object.keys(fields).length === 0) throw nothingToChange();
        return encodedJson(
          await notebooks.patch(principal.workspaceId, params.notebookId, expectedUpdatedAt, fields),
        );
      },
    }),
    defineRoute({
      method: 'DELETE',
      path: '/api/v3/notebooks/:notebookId',
      operationId: 'deleteNotebook',
      summary: 'Delete a notebook',
      description: 'Its runs can still be read. Files of the workspace are not touched.',
      tags: ['Notebooks'],
      access: { action: 'notebook.delete' },
      responses: { 204: { description: 'The notebook was deleted.' } },
      errors: ['session_open'],
      handle({ principal, params }) {
        notebooks.delete(principal.workspaceId, params.notebookId);
        return noContent();
      },
    }),
  ];
}

function nothingToChange(): AppError {
  const message = 'name at least one of serialization, datasourceSlugs, variables';
  return new AppError('invalid_request', `Nothing is to change: ${message}.`, {
    errors: [{ path: '', message }],
  });
}
