/** Rows of a request to SQL Server as they come. */
import type { EventEmitter } from 'node:events';
import { RemoteError } from '../http-route.ts';
import type { Route } from '../route.ts';
import { RowQueue } from '../row-queue.ts';
import { cellOf, columnOf, type TdsColumn } from './mssql-values.ts';

export interface TdsRequest extends EventEmitter {
  addParameter(name: string, type: unknown, value: unknown): void;
  pause(): void;
  resume(): void;
}

/** `end` of the queue is for the one who made the request. */
export function resultOf(request: TdsRequest, route: Route): RowQueue {
  const queue = new RowQueue({
    pause: () => request.pause(),
    resume: () => request.resume(),
    receivedBytes: () => route.receivedBytes(),
  });
  request.on('columnMetadata', (columns: readonly TdsColumn[]) => {
    if (queue.columns !== undefined)
      return queue.end(new RemoteError('SEVERAL', 'Only one result is supported.'));
    queue.columns = columns.map(columnOf);
  });
  request.on('row', (cells: readonly { readonly value: unknown; readonly metadata: TdsColumn }[]) => {
    queue.push(cells.map(({ value, metadata }) => cellOf(value, metadata)));
  });
  return queue;
}
