/** Checks responses of ClickHouse before any row is read. */
import type { Readable } from 'node:stream';
import { parseError } from '@clickhouse/client';
import { DatasourceFailure } from '../../failure.ts';

/**
 * Makes the driver pass on responses unchanged. Otherwise it would decompress every response that claims to be
 * compressed, and read errors to their end, so that a few megabytes could become gigabytes.
 */
export const AS_IT_IS = { decompress_response_stream: false, ignore_error_response: true } as const;

interface Answer {
  readonly stream: Readable;
  readonly http_status_code?: number | undefined;
  readonly response_headers: Readonly<Record<string, string | string[] | undefined>>;
}

const MAX_ERROR_BYTES = 256 * 1024;
const NEWLINE = 0x0a;

/**
 * Returns the error in the response, or `undefined` when the response is a result. Throws for a compressed response,
 * because none was requested.
 */
export async function errorIn({
  stream,
  http_status_code,
  response_headers,
}: Answer): Promise<Error | undefined> {
  if (response_headers['content-encoding'] !== undefined) {
    stream.destroy();
    throw new DatasourceFailure('failed');
  }
  const isResult = http_status_code === 200 && response_headers['x-clickhouse-exception-code'] === undefined;
  return isResult ? undefined : parseError(await beginningOf(stream));
}

/**
 * Yields the bytes of a stream and then a newline. Without the newline the driver would ignore a
 * last line that is cut off.
 */
export async function* endingWithNewline(stream: AsyncIterable<Buffer>): AsyncGenerator<Buffer> {
  let last: number | undefined;
  for await (const chunk of stream) {
    last = chunk.at(-1) ?? last;
    yield chunk;
  }
  if (last !== undefined && last !== NEWLINE) yield Buffer.from([NEWLINE]);
}

async function beginningOf(stream: AsyncIterable<Buffer>): Promise<string> {
  const chunks: Buffer[] = [];
  let size = 0;
  for await (const chunk of stream) {
    chunks.push(chunk);
    size += chunk.length;
    if (size > MAX_ERROR_BYTES) break;
  }
  return Buffer.concat(chunks).toString('utf8');
}
