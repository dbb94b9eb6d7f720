/** Ends the work of an app before its resources are closed. */
import type { Failure } from '#src/base/errors/errors.ts';
import type { ResyncReason } from '#src/contract/wire/shape.ts';
import type { Store } from '#storage/store.ts';

const STOPPING: Failure = {
  code: 'server_stopped',
  message: 'The server was stopped while this was running.',
};

export interface GoingOn {
  /** Notebook sessions and conversations, each with their streams. */
  readonly planes: readonly {
    suspendAll(failure: Failure): void;
    resyncAll(reason: ResyncReason): void;
  }[];
  /** The streams that operators follow. */
  readonly operatorStreams: readonly { resyncAll(): void }[];
  readonly store: Pick<Store, 'durable'>;
  /** Resolves once the other workers have suspended their sessions, too. */
  readonly othersSuspended: () => Promise<void> | undefined;
}

/**
 * Ends the work: running runs fail with `server_stopped`, sessions stay open in the store, and
 * subscribers are asked to reconnect later.
 */
export async function endWork({ planes, operatorStreams, store, othersSuspended }: GoingOn): Promise<void> {
  for (const plane of planes) plane.suspendAll(STOPPING);
  await store.durable(); // subscribers learn how their runs ended before their streams end
  for (const plane of planes) plane.resyncAll('server_stopping');
  for (const streams of operatorStreams) streams.resyncAll();
  // Until then another worker may send last events to this worker's subscribers.
  await othersSuspended();
}
