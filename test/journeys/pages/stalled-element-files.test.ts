// tier: whole, because the server waits ten seconds for the rest of a request
/** Files for elements of notebooks whose page sends no more of them. */
import assert from 'node:assert/strict';
import test from 'node:test';
import { beginElementFile, elementFilesIn, sentElementFile } from '#test/support/element-files.ts';
import { addMember } from '#test/support/members.ts';
import { openNotebook } from '#test/support/notebook-fixture.ts';
import { NotebookPageClient } from '#test/support/notebook-page.ts';
import { eventually } from '#test/support/processes.ts';
import { startServer } from '#test/support/server-fixture.ts';

const server = await startServer(test);
const { client, baseUrl } = server;

test('a stalled upload ends and leaves no file, and files of other members do not wait for this upload', async () => {
  const notebook = await openNotebook(server, { a: '1' });
  const page = await NotebookPageClient.open(client, baseUrl, notebook.id);
  const stalled = await Promise.all(Array.from({ length: 5 }, () => beginElementFile(server, page, 1000)));
  const ended = stalled.map((socket) => new Promise((resolve) => socket.on('close', resolve)));
  const other = await addMember(server, 'other', 'editor');
  const theirs = await NotebookPageClient.open(other.client, baseUrl, notebook.id);
  await sentElementFile(theirs, Buffer.from('at once'));
  assert.ok(
    elementFilesIn(server).some((name) => name.includes('.troupe-upload-')),
    'the stalled uploads are still there',
  );
  await Promise.all(ended);
  await eventually('the parts are gone', () => elementFilesIn(server).length === 2);
  await notebook.close();
  await eventually('no file is left', () => elementFilesIn(server).length === 0);
});
