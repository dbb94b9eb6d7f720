/** Notebooks, runs and assets as resources of MCP. */

import { randomUUID } from 'node:crypto';
import { ProtocolError, ProtocolErrorCode, type ReadResourceResult } from '@modelcontextprotocol/server';
import { FairSemaphore } from '#src/base/async/fair-semaphore.ts';
import { inSlices } from '#src/base/async/slices.ts';
import { AppError } from '#src/base/errors/errors.ts';
import { writeJson } from '#src/base/json/json-write.ts';
import { joined } from '#src/base/text/joined-bytes.ts';
import { decodeUtf8 } from '#src/base/text/utf8.ts';
import { ApiError } from '#src/contract/client/api-error.ts';
import { pathOf } from '#src/contract/wire/paths.ts';
import type { McpCaller } from './mcp-call.ts';

const PYTHON = 'text/x-python';
/**
 * How many resources are read at once. A resource of megabytes is in memory in several forms until its answer is made: as it is stored, as
 * text, and as JSON.
 */
const PLACES = new FairSemaphore({ width: 2, widthOfKey: 1, queueOfKey: 32 });

export const TEMPLATES = [
  {
    uriTemplate: 'troupe://notebooks/{notebookId}',
    name: 'notebook',
    description: 'A saved notebook, as a Python file.',
    mimeType: PYTHON,
  },
  {
    uriTemplate: 'troupe://runs/{runId}',
    name: 'run',
    description: 'A run, with its outputs.',
    mimeType: 'application/json',
  },
  {
    uriTemplate: 'troupe://runs/{runId}/assets/{assetId}',
    name: 'asset',
    description: 'An output of a run that is too large for its record, such as a picture.',
  },
] as const;

/** No resource has a longer address. The address is repeated in the answer, so its length is limited. */
const MAX_URI_CHARS = 1000;
/** A larger content is put into the answer in slices: the SDK makes the JSON of an answer in one turn. */
const MAX_WHOLE_BYTES = 256 * 1024;
/** A multiple of three, so that the base64 texts of the pieces can be joined. */
const BASE64_PIECE_BYTES = 96 * 1024;

/** Holds a content of megabytes. It is put into the answer after the SDK has made the rest of the answer. */
export class LargeContent {
  readonly #mark = `content ${randomUUID()}`;
  #json: readonly Uint8Array[] | undefined;

  /** Returns the text that stands for the content with this JSON. */
  holdPlaceOf(json: readonly Uint8Array[]): string {
    this.#json = json;
    return this.#mark;
  }

  /** Resolves with the answer that includes the content. */
  async putInto(response: Response, workspaceId: string): Promise<Response> {
    if (this.#json === undefined) return response;
    const [before = '', after] = (await response.text()).split(JSON.stringify(this.#mark));
    const parts = [Buffer.from(before), ...(after === undefined ? [] : [...this.#json, Buffer.from(after)])];
    const { status, headers } = response;
    return new Response(new Uint8Array(await inSlices(joined(parts), workspaceId)), { status, headers });
  }
}

/** Resolves with a page of the notebooks, the newest first. */
export async function listResources({ client }: McpCaller, cursor: string | undefined, signal: AbortSignal) {
  const { items, nextCursor } = await refusing(() =>
    client.notebooks.list({ order: 'desc', limit: 100, after: cursor, signal }),
  );
  return {
    resources: items.map(({ id, title }) => ({
      uri: `troupe://notebooks/${id}`,
      name: title ?? id,
      mimeType: PYTHON,
    })),
    ...(nextCursor === null ? {} : { nextCursor }),
  };
}

/**
 * Resolves with the content of a resource. Requests of one workspace are read one after the other. Rejects when too many of them wait,
 * and when the caller may not read the address or nothing has it.
 */
export async function readResource(
  caller: McpCaller,
  uri: string,
  signal: AbortSignal,
  large: LargeContent,
): Promise<ReadResourceResult> {
  if (uri.length > MAX_URI_CHARS)
    throw new ProtocolError(ProtocolErrorCode.InvalidParams, 'There is no resource with so long an address.');
  const read = async () => ({ contents: [await contentOf(caller, uri, signal, large)] });
  try {
    return await PLACES.pass(caller.principal.workspaceId, read, signal);
  } catch (error) {
    if (!(error instanceof AppError)) throw error;
    throw new ProtocolError(ProtocolErrorCode.InternalError, `${error.code}: ${error.message}`);
  }
}

async function contentOf(
  { client, connection, principal: { workspaceId } }: McpCaller,
  uri: string,
  signal: AbortSignal,
  large: LargeContent,
): Promise<ReadResourceResult['contents'][number]> {
  const textOf = async (bytes: Uint8Array) =>
    bytes.byteLength <= MAX_WHOLE_BYTES
      ? Buffer.from(bytes).toString()
      : large.holdPlaceOf(await inSlices(jsonOfText(bytes), workspaceId));
  const [, kind, id = '', assetId] =
    /^troupe:\/\/(notebooks|runs)\/([^/]+)(?:\/assets\/([^/]+))?$/.exec(uri) ?? [];
  if (kind === 'notebooks' && assetId === undefined) {
    const { bytes } = await refusing(() => client.notebooks.export(id, 'py', { signal }), uri);
    return { uri, mimeType: PYTHON, text: await textOf(bytes) };
  }
  if (kind === 'runs' && assetId === undefined) {
    const path = pathOf('getRun', { runId: id });
    const { bytes } = await refusing(() => connection.bytes({ method: 'GET', path, signal }), uri);
    return { uri, mimeType: 'application/json', text: await textOf(bytes) };
  }
  if (kind === 'runs' && assetId !== undefined) {
    const { bytes, contentType } = await refusing(() => client.runs.asset(id, assetId, { signal }), uri);
    const blob =
      bytes.byteLength <= MAX_WHOLE_BYTES
        ? Buffer.from(bytes).toString('base64')
        : large.holdPlaceOf(await inSlices(jsonOfBase64(bytes), workspaceId));
    return { uri, mimeType: contentType, blob };
  }
  throw notThere(uri);
}

/** Returns the JSON of the text that bytes are in UTF-8, in pieces and steps. */
function* jsonOfText(bytes: Uint8Array): Generator<undefined, Uint8Array[]> {
  return yield* writeJson(yield* decodeUtf8(bytes));
}

/** Returns the JSON of the base64 of bytes, in pieces and steps. */
function* jsonOfBase64(bytes: Uint8Array): Generator<undefined, Uint8Array[]> {
  const pieces = [Buffer.from('"')];
  for (let from = 0; from < bytes.byteLength; from += BASE64_PIECE_BYTES) {
    const piece = Buffer.from(bytes.subarray(from, from + BASE64_PIECE_BYTES)).toString('base64');
    pieces.push(Buffer.from(piece, 'latin1'));
    yield;
  }
  pieces.push(Buffer.from('"'));
  return pieces;
}

/**
 * Resolves or rejects with the request. A refusal of the request becomes an error of the protocol.
 */
async function refusing<T>(request: () => Promise<T>, uri?: string): Promise<T> {
  try {
    return await request();
  } catch (error) {
    if (!(error instanceof ApiError)) throw error;
    if (uri !== undefined && error.status === 404) throw notThere(uri);
    throw new ProtocolError(ProtocolErrorCode.InvalidParams, `${error.code}: ${error.message}`);
  }
}

function notThere(uri: string): ProtocolError {
  return new ProtocolError(
    ProtocolErrorCode.InvalidParams,
    `There is no resource ${uri}, or you may not read it.`,
  );
}
