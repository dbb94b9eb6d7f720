import type { FrontEndFiles } from '#src/notebook/front-end-files.ts';
import type { NotebookFiles, WritableFormat } from '#src/notebook/notebook-files.ts';
import { OPERATIONS } from '#src/wire/operations/table.ts';
import { publicOriginOf } from '../edge/origin.ts';
import { attachment } from '../reply/content-headers.ts';
import { encodedJson, raw } from '../reply/reply.ts';
import { defineRoute, type Route } from '../route.ts';
import { frontEndPath } from './front-end.ts';

const CONTENT_TYPES: Readonly<Record<WritableFormat, string>> = {
  py: 'text/x-python; charset=utf-8',
  ipynb: 'application/x-ipynb+json',
  md: 'text/markdown; charset=utf-8',
  html: 'text/html; charset=utf-8',
};

export interface NotebookFileOptions {
  readonly files: NotebookFiles;
  readonly frontEnd: FrontEndFiles;
  /** The address at which browsers reach this server, when it is configured. */
  readonly publicUrl: string | undefined;
}

/** Notebooks as files: import and export. */
export function notebookFileRoutes({ files, frontEnd, publicUrl }: NotebookFileOptions): readonly Route[] {
  return [
    defineRoute({
      ...OPERATIONS.importNotebook,
      summary: 'Create a notebook from a file, or replace the cells of one',
      description:
        'Accepts a marimo notebook or any Python script (`py`), a Jupyter notebook (`ipynb`), or Markdown with Python ' +
        'blocks (`md`). Nothing in the file is run. For a file that cannot be read, `errors` says what is wrong where.',
      tags: ['Notebooks'],
      access: { action: 'notebook.write' },
      bodyLimitBytes: 16 * 1024 * 1024,
      homeInBody: true,
      homeOf: ({ body }) => ({ id: body.replaces?.notebookId }),
      errors: ['unreadable_notebook', 'duplicate_cell', 'stale_update', 'session_open'],
      async handle({ principal: { workspaceId, userId }, body }) {
        if (body.replaces !== undefined)
          return encodedJson(await files.replace(workspaceId, body.replaces, body));
        const { document, json } = await files.import(workspaceId, body, userId);
        return encodedJson(json, 201, { location: `/api/v3/notebooks/${document.id}` });
      },
    }),
    defineRoute({
      ...OPERATIONS.exportNotebook,
      summary: 'Export a notebook as a file',
      description:
        'Exports the saved notebook, even while a session is open on it. `ipynb` and `html` include the last output of ' +
        'each cell whose code has not changed since.',
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
