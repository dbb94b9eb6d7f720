import { AppError } from '#src/base/errors/errors.ts';
import { type NotebookUrl, withMembers, withUrlInSlices } from '#src/base/json/notebook-url.ts';
import { MAX_VERSIONS, MAX_VERSIONS_BYTES, VERSION_MS } from '#src/base/version-limits.ts';
import { SECRET_NAME } from '#src/contract/wire/notebook.ts';
import { OPERATIONS } from '#src/contract/wire/operations/table.ts';
import { pathOf } from '#src/contract/wire/paths.ts';
import type { FrontEndFiles } from '#src/notebook/pages/front-end-files.ts';
import type { NotebookDeletion } from '#src/notebook/requests/notebook-deletion.ts';
import type { ImportOutcome, NotebookFiles, WritableFormat } from '#src/notebook/saved/notebook-files.ts';
import type { NotebookSecrets } from '#src/notebook/saved/notebook-secrets.ts';
import type { SavedNotebooks } from '#src/notebook/saved/saved-notebooks.ts';
import { publicOriginOf } from '../edge/origin.ts';
import { attachment } from '../reply/content-headers.ts';
import { requireState, tagged, unlessKnown, versionTag } from '../reply/entity-tag.ts';
import { encodedJson, noContent, ok, raw } from '../reply/reply.ts';
import { prepareHeaders } from '../reply/write-reply.ts';
import { defineRoute, type Route } from '../route.ts';
import type { BrowserRoutesContext } from './browser-routes-context.ts';
import { frontEndPath } from './front-end.ts';

const BODY_LIMIT_BYTES = 16 * 1024 * 1024;

/** Saved notebooks. */
export function notebookRoutes(
  notebooks: SavedNotebooks,
  deletion: NotebookDeletion,
  urlOf: NotebookUrl,
): readonly Route[] {
  const read = notebooks.createReader(({ json, updatedAt }, id) => {
    const etag = versionTag(updatedAt);
    const headers = prepareHeaders({ etag });
    const reply = (shown: Uint8Array) => encodedJson(shown, 200, headers);
    const shown = withUrlInSlices(json, urlOf(id));
    return { reply: shown instanceof Promise ? shown.then(reply) : reply(shown), etag };
  });
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
        const reply = encodedJson(
          await withUrlInSlices(json, urlOf(document.id), principal.workspaceId),
          201,
          {
            location: pathOf('getNotebook', { notebookId: document.id }),
          },
        );
        return tagged(reply, versionTag(document.updatedAt));
      },
    }),
    defineRoute({
      ...OPERATIONS.listNotebooks,
      largeAnswer: true,
      summary: 'List notebooks, by the time at which they were created',
      tags: ['Notebooks'],
      access: { action: 'notebook.read' },
      readsStoreOnly: true,
      errors: ['invalid_cursor'],
      handle: async ({ principal, query, signal }) =>
        encodedJson(await notebooks.list(principal.workspaceId, { ...query, signal }, urlOf)),
    }),
    defineRoute({
      ...OPERATIONS.getNotebook,
      largeAnswer: true,
      summary: 'Read a notebook',
      tags: ['Notebooks'],
      access: { action: 'notebook.read' },
      readsStoreOnly: true,
      handle({ principal, params, headers }) {
        const { reply, etag } = read(principal.workspaceId, params.notebookId);
        if (headers['if-none-match'] === '') return reply;
        return reply instanceof Promise
          ? reply.then((whole) => unlessKnown(whole, etag, headers))
          : unlessKnown(reply, etag, headers);
      },
    }),
    defineRoute({
      ...OPERATIONS.updateNotebook,
      summary: 'Change a notebook',
      description:
        'Replaces the members that are given: at least one of `title`, `serialization`, ' +
        '`datasourceSlugs`, `variables` and `metadata`. `expectedUpdatedAt` is the `updatedAt` of your ' +
        'last read. The request is refused while a session is open on the notebook: send changed code ' +
        'with an execution instead.',
      tags: ['Notebooks'],
      access: { action: 'notebook.write' },
      bodyLimitBytes: BODY_LIMIT_BYTES,
      errors: ['duplicate_cell', 'stale_update', 'session_open', 'precondition_failed'],
      async handle({ principal, params, headers, body: { expectedUpdatedAt, ...fields } }) {
        if (Object.keys(fields).length === 0) throw nothingToChange();
        const { workspaceId } = principal;
        const { notebookId } = params;
        const checkState = (updatedAt: string) => requireState(headers, () => versionTag(updatedAt));
        const by = principal.userId;
        const change = { expectedUpdatedAt, checkState, by };
        const changed = await notebooks.patch(workspaceId, notebookId, fields, change);
        return tagged(
          encodedJson(await withUrlInSlices(changed.json, urlOf(notebookId), workspaceId)),
          versionTag(changed.updatedAt),
        );
      },
    }),
    defineRoute({
      ...OPERATIONS.deleteNotebook,
      summary: 'Delete a notebook',
      description:
        'Deletes the notebook for ever, with its session, its conversation, and its runs with their outputs and assets. Files of ' +
        'the workspace are not touched. Refused while a session is open on the notebook.',
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
  const message = 'name at least one of title, serialization, datasourceSlugs, variables, metadata';
  return new AppError('invalid_request', `Nothing is to change: ${message}.`, {
    errors: [{ path: '', message }],
  });
}

/** Returns the JSON of an imported notebook, with the warnings as its last member. */
function jsonOfImport({ id, json, warnings }: ImportOutcome, urlOf: NotebookUrl): Promise<Uint8Array> {
  return withMembers(json, { url: urlOf(id), ...(warnings.length === 0 ? {} : { warnings }) });
}

function noSettings(): AppError {
  const message = 'is for new notebooks only: leave out settingsFrom or replaces';
  return new AppError('invalid_request', `settingsFrom ${message}.`, {
    errors: [{ path: '/settingsFrom', message }],
  });
}

/** The media types of notebook files. */
export const CONTENT_TYPES: Readonly<Record<WritableFormat, string>> = {
  py: 'text/x-python; charset=utf-8',
  ipynb: 'application/x-ipynb+json',
  md: 'text/markdown; charset=utf-8',
  html: 'text/html; charset=utf-8',
};

export interface NotebookFileOptions {
  readonly files: NotebookFiles;
  readonly frontEnd: FrontEndFiles;
  readonly urlOf: NotebookUrl;
}

/** Notebooks as files: import and export. */
export function notebookFileRoutes(
  { publicUrl }: BrowserRoutesContext,
  { files, frontEnd, urlOf }: NotebookFileOptions,
): readonly Route[] {
  return [
    defineRoute({
      ...OPERATIONS.importNotebook,
      summary: 'Create a notebook from a file, or replace the cells of a notebook',
      description:
        'Accepts a marimo notebook or any Python script (`py`), a Jupyter notebook (`ipynb`), or Markdown with Python ' +
        'blocks (`md`). Nothing in the file is run. For a file that cannot be read, `errors` lists the mistakes with their places.',
      tags: ['Notebooks'],
      access: { action: 'notebook.write' },
      bodyLimitBytes: BODY_LIMIT_BYTES,
      homeInBody: true,
      homeOf: ({ body }) => ({ id: body.replaces?.notebookId }),
      errors: ['unreadable_notebook', 'duplicate_cell', 'stale_update', 'session_open'],
      async handle({ principal: { workspaceId, userId }, body }) {
        if (body.replaces !== undefined && body.settingsFrom !== undefined) throw noSettings();
        if (body.replaces !== undefined)
          return encodedJson(
            await jsonOfImport(await files.replace(workspaceId, body.replaces, body, userId), urlOf),
          );
        const imported = await files.import(workspaceId, body, userId);
        const location = pathOf('getNotebook', { notebookId: imported.id });
        return encodedJson(await jsonOfImport(imported, urlOf), 201, { location });
      },
    }),
    defineRoute({
      ...OPERATIONS.exportNotebook,
      summary: 'Export a notebook as a file',
      description:
        'Exports the saved notebook, even while a session is open on it. `ipynb` and `html` include the last output of ' +
        'each cell whose code has not changed since the cell ran.',
      tags: ['Notebooks'],
      access: { action: 'notebook.read' },
      readsStoreOnly: true,
      errors: ['unwritable_notebook'],
      async handle({ principal, params, query: { format, frontEnd: source }, headers }) {
        const origin = () => publicUrl ?? publicOriginOf(headers.host, headers['x-forwarded-proto']);
        const assetUrl =
          format === 'html' && source !== 'cdn' ? origin() + frontEndPath(frontEnd.version()) : undefined;
        const { name, content } = await files.export(principal.workspaceId, params.notebookId, {
          format,
          assetUrl,
        });
        return raw(CONTENT_TYPES[format], content, { 'content-disposition': attachment(name) });
      },
    }),
  ];
}

/** Earlier versions of notebooks. */
export function notebookVersionRoutes(notebooks: SavedNotebooks, urlOf: NotebookUrl): readonly Route[] {
  return [
    defineRoute({
      ...OPERATIONS.listNotebookVersions,
      summary: 'List the versions of a notebook, newest first',
      description:
        `The first version is the present state of the notebook. A notebook keeps its last ${MAX_VERSIONS} earlier versions, in up to ` +
        `${MAX_VERSIONS_BYTES / 1024 / 1024} MiB. Changes that one user makes within ${VERSION_MS / 60_000} minutes are one version; a ` +
        'file or an earlier version that replaces the notebook always begins a new version.',
      tags: ['Notebooks'],
      access: { action: 'notebook.read' },
      readsStoreOnly: true,
      handle: ({ principal, params }) =>
        ok({ items: notebooks.versions(principal.workspaceId, params.notebookId) }),
    }),
    defineRoute({
      ...OPERATIONS.getNotebookVersion,
      largeAnswer: true,
      summary: 'Read a version of a notebook',
      description: 'A version is named by its `updatedAt`.',
      tags: ['Notebooks'],
      access: { action: 'notebook.read' },
      readsStoreOnly: true,
      handle({ principal, params: { notebookId, version } }) {
        const json = notebooks.version(principal.workspaceId, notebookId, version);
        const shown = withUrlInSlices(json, urlOf(notebookId), principal.workspaceId);
        return shown instanceof Promise ? shown.then((bytes) => encodedJson(bytes)) : encodedJson(shown);
      },
    }),
    defineRoute({
      ...OPERATIONS.restoreNotebookVersion,
      summary: 'Restore a version of a notebook',
      description:
        'The notebook gets the title, cells, datasources, variables and metadata of the version; its ' +
        'secrets are not changed. Its present state becomes a version, so that a restoration can be ' +
        'undone. Refused while a session is open on the notebook.',
      tags: ['Notebooks'],
      access: { action: 'notebook.write' },
      errors: ['stale_update', 'session_open'],
      async handle({ principal: { workspaceId, userId }, params, body: { expectedUpdatedAt } }) {
        const { notebookId, version } = params;
        const change = { expectedUpdatedAt, by: userId };
        const restored = await notebooks.restore(workspaceId, notebookId, version, change);
        return tagged(
          encodedJson(await withUrlInSlices(restored.json, urlOf(notebookId), workspaceId)),
          versionTag(restored.updatedAt),
        );
      },
    }),
  ];
}

/** Secret environment variables of notebooks. */
export function notebookSecretRoutes(secrets: NotebookSecrets): readonly Route[] {
  return [
    defineRoute({
      ...OPERATIONS.listNotebookSecrets,
      summary: 'List the secret variables of a notebook, by name',
      description: 'The values are never returned.',
      tags: ['Notebooks'],
      access: { action: 'notebook.read' },
      readsStoreOnly: true,
      handle: ({ principal, params }) =>
        ok({ items: secrets.list(principal.workspaceId, params.notebookId) }),
    }),
    defineRoute({
      ...OPERATIONS.setNotebookSecret,
      summary: 'Set a secret variable of a notebook',
      description:
        "The next kernel of the notebook has the secret as an environment variable, in place of a variable with the same name among the notebook's `variables`. The " +
        'value is stored encrypted and is never returned. Code of the notebook can read the value, and so can everybody who may change or run ' +
        'the notebook.',
      tags: ['Notebooks'],
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
      description: 'A running kernel keeps the value until it ends.',
      tags: ['Notebooks'],
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
