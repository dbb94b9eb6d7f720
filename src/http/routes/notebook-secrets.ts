import { AppError } from '#src/core/errors.ts';
import type { NotebookSecrets } from '#src/notebook/notebook-secrets.ts';
import { SECRET_NAME } from '#src/wire/notebook.ts';
import { OPERATIONS } from '#src/wire/operations/table.ts';
import { noContent, ok } from '../reply/reply.ts';
import { defineRoute, type Route } from '../route.ts';

const tags = ['Notebooks'];

/** Secret environment variables of notebooks. */
export function notebookSecretRoutes(secrets: NotebookSecrets): readonly Route[] {
  return [
    defineRoute({
      ...OPERATIONS.listNotebookSecrets,
      summary: 'List the secret variables of a notebook, by name',
      description: 'The values are never returned.',
      tags,
      access: { action: 'notebook.read' },
      readsStoreOnly: true,
      handle: ({ principal, params }) =>
        ok({ items: secrets.list(principal.workspaceId, params.notebookId) }),
    }),
    defineRoute({
      ...OPERATIONS.setNotebookSecret,
      summary: 'Set a secret variable of a notebook',
      description:
        "The next kernel of the notebook has it as an environment variable; it wins over one of the notebook's `variables`. The " +
        'value is stored encrypted and is never returned. Code of the notebook can read it, and so can everybody who may change or run ' +
        'the notebook.',
      tags,
      access: { action: 'notebook.write' },
      sameOrigin: true,
      errors: ['quota_exceeded'],
      handle({ principal: { workspaceId, userId }, params: { notebookId, name }, body: { value } }) {
        if (!new RegExp(SECRET_NAME).test(name)) throw invalidName();
        return ok(secrets.set(workspaceId, notebookId, { name, value, userId }));
      },
    }),
    defineRoute({
      ...OPERATIONS.deleteNotebookSecret,
      summary: 'Delete a secret variable of a notebook',
      description: 'A kernel that is running keeps it until it ends.',
      tags,
      access: { action: 'notebook.write' },
      sameOrigin: true,
      handle({ principal, params }) {
        secrets.remove(principal.workspaceId, params.notebookId, params.name);
        return noContent();
      },
    }),
  ];
}

function invalidName(): AppError {
  const message = 'must be the name of an environment variable: letters, digits and _, at most 128';
  return new AppError('invalid_request', `The name ${message}.`, { errors: [{ path: 'name', message }] });
}
