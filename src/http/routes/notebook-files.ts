import Type from 'typebox';
import type { FrontEndFiles } from '#src/notebook/front-end-files.ts';
import type { NotebookFiles, WritableFormat } from '#src/notebook/notebook-files.ts';
import { attachment } from '../content-disposition.ts';
import { originOf } from '../public-origin.ts';
import { encodedJson, raw } from '../reply.ts';
import { defineRoute, type Route } from '../route.ts';
import { NotebookSchema } from '../schemas/notebook.ts';
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
  /** Where browsers reach this server, when that is configured. */
  readonly publicUrl: string | undefined;
}

export function notebookFileRoutes({ files, frontEnd, publicUrl }: NotebookFileOptions): readonly Route[] {
  return [
    defineRoute({
      method: 'POST',
      path: '/api/v3/notebooks/import',
      operationId: 'importNotebook',
      summary: 'Create a notebook from a file',
      description:
        'The text of a marimo notebook or any Python script (`py`), a Jupyter notebook (`ipynb`), or Markdown with ' +
        'Python blocks (`md`). Nothing in it is run. What a broken file has where is in `errors`.',
      tags: ['Notebooks'],
      access: { action: 'notebook.write' },
      bodyLimitBytes: 16 * 1024 * 1024,
      body: Type.Object(
        {
          format: Type.Union([Type.Literal('py'), Type.Literal('ipynb'), Type.Literal('md')]),
          content: Type.String({ description: 'The whole file.' }),
        },
        { additionalProperties: false },
      ),
      responses: {
        201: { description: 'Created.', schema: NotebookSchema, headers: { location: 'The notebook.' } },
      },
      errors: ['unreadable_notebook'],
      async handle({ principal, body: { format, content } }) {
        const { document, json } = await files.import(principal.workspaceId, format, content);
        return encodedJson(json, 201, { location: `/api/v3/notebooks/${document.id}` });
      },
    }),
    defineRoute({
      method: 'GET',
      path: '/api/v3/notebooks/:notebookId/export',
      operationId: 'exportNotebook',
      summary: 'Write a notebook as a file',
      description:
        'What is saved, also while a session is open. `ipynb` and `html` bring the last outputs of cells whose code ' +
        'is still the one that made them.',
      tags: ['Notebooks'],
      access: { action: 'notebook.read' },
      headers: {
        host: 'Where the links of a page lead, unless a public address is configured.',
        'x-forwarded-proto': '`https` when a proxy has received the request so.',
      },
      query: Type.Object(
        {
          format: Type.Union([
            Type.Literal('py'),
            Type.Literal('ipynb'),
            Type.Literal('md'),
            Type.Literal('html'),
          ]),
          frontEnd: Type.Optional(
            Type.Union([Type.Literal('server'), Type.Literal('cdn')], {
              default: 'server',
              description: 'Where an `html` page loads its front end from: this server, or a public CDN.',
            }),
          ),
        },
        { additionalProperties: false },
      ),
      responses: {
        200: {
          description: 'The file.',
          contentType: Object.values(CONTENT_TYPES).map((type) => type.split(';', 1)[0] ?? type),
          headers: { 'content-disposition': "A file name made from the notebook's title, or its id." },
        },
      },
      errors: ['unwritable_notebook'],
      async handle({ principal, params, query: { format, frontEnd: source }, headers }) {
        const origin = () => publicUrl ?? originOf(headers.host, headers['x-forwarded-proto']);
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
