/** Notebooks, runs and assets as resources of MCP. */
import { ProtocolError, ProtocolErrorCode, type ReadResourceResult } from '@modelcontextprotocol/server';
import { ApiError } from '#src/client/api-error.ts';
import { AppError } from '#src/core/errors.ts';
import { FairSemaphore } from '#src/core/fair-semaphore.ts';
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
 * Resolves with the content of a resource, when it is the turn of the caller's workspace. Rejects for an address that names nothing that
 * the caller may read, and when too many wait.
 */
export async function readResource(
  { client, principal: { workspaceId } }: McpCaller,
  uri: string,
  signal: AbortSignal,
): Promise<ReadResourceResult> {
  try {
    return await PLACES.pass(workspaceId, () => contentOf(client, uri, signal), signal);
  } catch (error) {
    if (!(error instanceof AppError)) throw error;
    throw new ProtocolError(ProtocolErrorCode.InternalError, `${error.code}: ${error.message}`);
  }
}

async function contentOf(
  client: McpCaller['client'],
  uri: string,
  signal: AbortSignal,
): Promise<ReadResourceResult> {
  const [, kind, id = '', assetId] =
    /^troupe:\/\/(notebooks|runs)\/([^/]+)(?:\/assets\/([^/]+))?$/.exec(uri) ?? [];
  if (kind === 'notebooks' && assetId === undefined) {
    const { bytes } = await refusing(() => client.notebooks.export(id, 'py', { signal }), uri);
    return { contents: [{ uri, mimeType: PYTHON, text: Buffer.from(bytes).toString() }] };
  }
  if (kind === 'runs' && assetId === undefined) {
    const run = await refusing(() => client.runs.get(id, { signal }), uri);
    return { contents: [{ uri, mimeType: 'application/json', text: JSON.stringify(run) }] };
  }
  if (kind === 'runs' && assetId !== undefined) {
    const { bytes, contentType } = await refusing(() => client.runs.asset(id, assetId, { signal }), uri);
    return { contents: [{ uri, mimeType: contentType, blob: Buffer.from(bytes).toString('base64') }] };
  }
  throw notThere(uri);
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
