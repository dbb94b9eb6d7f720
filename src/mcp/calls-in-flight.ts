/**
 * The tool calls that are in progress, so that a notification can cancel one. A client of the 2025 protocol keeps its request
 * open and sends `notifications/cancelled` in another one, which may reach another worker.
 */
import type { Cluster } from '#src/runtime/homes/cluster.ts';

/** Identifies a call: request ids are unique among the requests of one client only. */
export interface CallName {
  readonly tokenId: string;
  /** The `Mcp-Session-Id` of the client; empty when it has none. */
  readonly clientId: string;
  readonly requestId: string | number;
}

export class CallsInFlight {
  readonly #cluster: Pick<Cluster, 'askOthers' | 'onAsked'>;
  readonly #calls = new Map<string, Set<AbortController>>();

  constructor(cluster: Pick<Cluster, 'askOthers' | 'onAsked'>) {
    this.#cluster = cluster;
    cluster.onAsked('cancel-mcp-call', (key) => this.#abort(String(key)));
  }

  /** Returns a signal that aborts when the call is cancelled or its request ends; `end` must be called when the call is over. */
  begin(name: CallName, request: AbortSignal): { readonly signal: AbortSignal; readonly end: () => void } {
    const key = keyOf(name);
    const calls = this.#calls.get(key) ?? new Set();
    this.#calls.set(key, calls);
    const abort = new AbortController();
    const leave = () => abort.abort(request.reason);
    if (request.aborted) leave();
    else request.addEventListener('abort', leave, { once: true });
    calls.add(abort);
    const end = () => {
      request.removeEventListener('abort', leave);
      calls.delete(abort);
      if (calls.size === 0) this.#calls.delete(key);
    };
    return { signal: abort.signal, end };
  }

  /** Cancels the call in the worker that runs it. Resolves once all workers have answered. */
  async cancel(name: CallName): Promise<void> {
    const key = keyOf(name);
    this.#abort(key);
    await this.#cluster.askOthers('cancel-mcp-call', key);
  }

  #abort(key: string): void {
    for (const call of this.#calls.get(key) ?? [])
      call.abort(new Error('The client has cancelled the call.'));
  }
}

function keyOf({ tokenId, clientId, requestId }: CallName): string {
  return JSON.stringify([tokenId, clientId, requestId]);
}
