import { cutText } from '#src/base/text/cut-text.ts';
import type { Client } from '#src/contract/client/client.ts';
import type { NotebookFileFormat } from '#src/contract/wire/notebook.ts';

const FORMATS: Readonly<Record<string, NotebookFileFormat>> = { py: 'py', ipynb: 'ipynb', md: 'md' };

/** The endings of the files that can be imported, in the form of an `accept` attribute. */
export const ACCEPTED = '.py,.ipynb,.md';

export const MAX_TITLE_CHARACTERS = 200;

/**
 * Creates a notebook from a file, and resolves with its id. A file without a title gives the
 * notebook its file name.
 */
export async function importFile(client: Client, file: File): Promise<string> {
  const at = file.name.lastIndexOf('.');
  const format = FORMATS[file.name.slice(at + 1).toLowerCase()];
  if (format === undefined) throw new Error(`${file.name} is not a notebook. Notebooks end in ${ACCEPTED}.`);
  const { id, title, updatedAt } = await client.notebooks.import({ format, content: await file.text() });
  const plain = file.name.slice(0, at).replace(/[\p{Cc}\p{Surrogate}]/gu, ' ');
  const name = cutText(plain.trim(), 0, MAX_TITLE_CHARACTERS);
  if (title === null && name !== '')
    await client.notebooks.update(id, { title: name, expectedUpdatedAt: updatedAt });
  return id;
}
