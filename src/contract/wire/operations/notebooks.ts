import { NotebookListQuery } from '../lists.ts';
import {
  ImportedNotebookSchema,
  NewNotebookSecretSchema,
  NotebookChangeSchema,
  NotebookExportQuery,
  NotebookFieldsSchema,
  NotebookImportSchema,
  NotebookRestorationSchema,
  NotebookSchema,
  NotebookSecretListSchema,
  NotebookSecretSchema,
  NotebookSummarySchema,
  NotebookVersionListSchema,
} from '../notebook.ts';
import { pageSchema } from '../shape.ts';
import { declareOperations } from './operation.ts';
import { ETAG_HEADER, NOT_MODIFIED, READ_CONDITION, WRITE_CONDITIONS } from './parts.ts';

/** Saved notebooks, their files and their secrets. */
export const NOTEBOOK_OPERATIONS = declareOperations({
  listNotebooks: {
    query: NotebookListQuery,
    responses: {
      200: {
        description: 'A page of summaries.',
        schema: pageSchema('NotebookPage', NotebookSummarySchema),
      },
    },
  },
  createNotebook: {
    body: NotebookFieldsSchema,
    responses: {
      201: {
        description: 'The notebook was created.',
        schema: NotebookSchema,
        headers: { location: 'The path of the notebook.', ...ETAG_HEADER },
      },
    },
  },
  getNotebook: {
    headers: READ_CONDITION,
    responses: {
      200: { description: 'The saved notebook.', schema: NotebookSchema, headers: ETAG_HEADER },
      304: NOT_MODIFIED,
    },
  },
  updateNotebook: {
    headers: WRITE_CONDITIONS,
    body: NotebookChangeSchema,
    responses: {
      200: { description: 'The changed notebook.', schema: NotebookSchema, headers: ETAG_HEADER },
    },
  },
  deleteNotebook: {
    headers: WRITE_CONDITIONS,
    responses: { 204: { description: 'The notebook was deleted.' } },
  },
  exportNotebook: {
    headers: {
      host: 'The address that links in an `html` page point to, unless a public address is configured.',
      'x-forwarded-proto': '`https` when the proxy in front received the request over TLS.',
    },
    query: NotebookExportQuery,
    responses: {
      200: {
        description: 'The file.',
        contentType: ['text/x-python', 'application/x-ipynb+json', 'text/markdown', 'text/html'],
        headers: { 'content-disposition': "A file name made from the notebook's title, or from its id." },
      },
    },
  },
  listNotebookVersions: {
    responses: {
      200: { description: 'The present version and all earlier ones.', schema: NotebookVersionListSchema },
    },
  },
  getNotebookVersion: {
    responses: { 200: { description: 'The notebook in that version.', schema: NotebookSchema } },
  },
  restoreNotebookVersion: {
    body: NotebookRestorationSchema,
    responses: {
      200: { description: 'The notebook in that version.', schema: NotebookSchema, headers: ETAG_HEADER },
    },
  },
  listNotebookSecrets: {
    responses: { 200: { description: 'All secret variables.', schema: NotebookSecretListSchema } },
  },
  setNotebookSecret: {
    body: NewNotebookSecretSchema,
    responses: { 200: { description: 'The secret was stored.', schema: NotebookSecretSchema } },
  },
  deleteNotebookSecret: {
    responses: { 204: { description: 'The secret was deleted.' } },
  },
  importNotebook: {
    body: NotebookImportSchema,
    responses: {
      200: { description: 'The notebook was changed.', schema: ImportedNotebookSchema },
      201: {
        description: 'The notebook was created.',
        schema: ImportedNotebookSchema,
        headers: { location: 'The path of the notebook.' },
      },
    },
  },
});
