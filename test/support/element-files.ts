/** Files that a page sends to elements of a notebook. */
import assert from 'node:assert/strict';
import { readdirSync } from 'node:fs';
import { connect, type Socket } from 'node:net';
import { join } from 'node:path';
import type { NotebookPageClient } from './notebook-page.ts';
import { eventually } from './processes.ts';
import type { TestServer } from './server-fixture.ts';

/** The hidden folder of the workspace in which the files are. */
export const ELEMENT_FILES = '.troupe-element-files';

export function sendElementFile(
  { address, token }: NotebookPageClient,
  body: Uint8Array<ArrayBuffer>,
): Promise<Response> {
  const headers = { authorization: `Bearer ${token}`, 'content-type': 'application/octet-stream' };
  return fetch(`${address}api/element-files`, { method: 'POST', headers, body });
}

/** Sends a file, and returns the text that names it in the value of an element. */
export async function sentElementFile(
  page: NotebookPageClient,
  body: Uint8Array<ArrayBuffer>,
): Promise<string> {
  const response = await sendElementFile(page, body);
  assert.equal(response.status, 200, await response.clone().text());
  return `upload:${((await response.json()) as { id: string }).id}`;
}

/** Returns the names below the hidden folder, or below that of one session. The server removes folders that have become empty meanwhile. */
export function elementFilesIn({ filesDir }: Pick<TestServer, 'filesDir'>, sessionId = ''): string[] {
  try {
    return readdirSync(join(filesDir, ELEMENT_FILES, sessionId), { recursive: true }) as string[];
  } catch (error) {
    if (Object(error).code === 'ENOENT') return [];
    throw error;
  }
}

/** Begins to send a file of a mebibyte by a connection of its own. Resolves once so many bytes of it have arrived. */
export async function beginElementFile(
  server: Pick<TestServer, 'filesDir'>,
  page: NotebookPageClient,
  bytes: number,
): Promise<Socket> {
  const { hostname, port, pathname } = new URL(`${page.address}api/element-files`);
  const socket = connect(Number(port), hostname);
  socket.on('error', () => {});
  const head = [
    `POST ${pathname} HTTP/1.1`,
    `host: ${hostname}:${port}`,
    `authorization: Bearer ${page.token}`,
    'content-type: application/octet-stream',
    `content-length: ${1024 * 1024}`,
    '\r\n',
  ];
  socket.write(head.join('\r\n'));
  socket.write(Buffer.alloc(bytes));
  await eventually('the file has begun', () =>
    elementFilesIn(server).some((name) => name.includes('.troupe-upload-')),
  );
  return socket;
}
