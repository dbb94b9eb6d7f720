/** Requests of one client to the simulated server. */
import { Connection, type RequestHead } from '../http/connection.ts';
import { type SimulatedServer, TOKEN, WORKSPACE } from '../simulated-server.ts';
import { diskOf } from '../stand-ins/disk.ts';
import { OUTSIDE, type World, world } from '../world/world.ts';

/** An answer. */
export interface Answer {
  readonly status: number;
  readonly text: string;
  readonly json: Readonly<Record<string, unknown>>;
}

/**
 * `unknown`: the connection has ended, and nobody knows whether the request was carried out. `refused`: nobody listened, so it was not.
 */
export type Outcome = Answer | 'unknown' | 'refused';

interface Asked {
  readonly body?: unknown;
  readonly query?: string | undefined;
  readonly key?: string | undefined;
  /** Further headers. */
  readonly headers?: Readonly<Record<string, string>>;
  /** The client leaves before the answer, after this time. */
  readonly leavesAfterMs?: number | undefined;
}

/** Longer than any request may take: the start of a kernel has a minute. A request that is neither answered nor cut off by then is lost. */
const ANSWER_PATIENCE_MS = 90_000;
/** How long after the disk was full the server may still believe so: it looks once a second, and its answer may be slow. */
const AFTER_TROUBLE_MS = 3000;
/** The answer to a request whose worker has ended, and the longest time until all workers know of an end. */
const WORKER_LOST = /The worker that handled the request has ended/;
const NEWS_MS = 1000;
/** The longest time from the moment at which a worker leaves the others to its end (`DRAIN_BASE_MS`, for few sessions). */
const DRAIN_MS = 6000;
const NOTHING: Answer['json'] = {};

export class SimulatedClient {
  readonly #server: SimulatedServer;
  readonly #token: string;
  readonly #world: World = world();

  constructor(server: SimulatedServer, token = TOKEN) {
    this.#server = server;
    this.#token = token;
  }

  /** Returns a client of the same server with another access token. */
  as(token: string): SimulatedClient {
    return new SimulatedClient(this.#server, token);
  }

  get #wasFull(): boolean {
    const { trouble, troubledAtMs } = diskOf(this.#world);
    return trouble !== undefined || this.#world.nowMs - troubledAtMs < AFTER_TROUBLE_MS;
  }

  /**
   * A request was answered with the end of its worker: a worker has ended since the request was sent, or shortly before, or is about to. A
   * worker that drains leaves the others before it ends.
   */
  #requireLostWorker(request: string, sentMs: number): void {
    this.#world.after(
      DRAIN_MS,
      () => {
        if ((this.#server.life.sinceMs ?? 0) > sentMs - NEWS_MS) return;
        this.#world.problem(`${request} says that its worker has ended, and no worker has`);
      },
      OUTSIDE,
    );
  }

  get server(): SimulatedServer {
    return this.#server;
  }

  get(path: string, query?: string): Promise<Outcome> {
    return this.ask('GET', path, query === undefined ? {} : { query });
  }

  post(path: string, body: unknown, more: Omit<Asked, 'body'> = {}): Promise<Outcome> {
    return this.ask('POST', path, { body, ...more });
  }

  ask(
    method: string,
    path: string,
    { body, query, key, headers = {}, leavesAfterMs }: Asked = {},
  ): Promise<Outcome> {
    const bytes = body === undefined ? Buffer.alloc(0) : Buffer.from(JSON.stringify(body));
    const head = {
      method,
      path,
      query,
      headers: { ...headersOf(this.#token, body === undefined ? undefined : bytes, key), ...headers },
    };
    this.#world.trace.add('send', `${method} ${path} ${key ?? ''} ${bytes.toString()}`);
    this.#world.count('operations');
    const sentMs = this.#world.nowMs;
    return new Promise((resolve) => {
      const chunks: Buffer[] = [];
      let status = 0;
      const settle = (outcome: Outcome) => {
        lost.isCancelled = true;
        this.#server.forget(connection);
        const shown = typeof outcome === 'string' ? outcome : `${outcome.status} ${outcome.text}`;
        this.#world.trace.add('answer', `${method} ${path} ${shown}`);
        if (typeof outcome === 'object' && outcome.status === 507 && !this.#wasFull)
          this.#world.problem(
            `${method} ${path} was answered with 507, and the disk was not full: ${outcome.text}`,
          );
        if (typeof outcome === 'object' && WORKER_LOST.test(outcome.text))
          this.#requireLostWorker(`${method} ${path}`, sentMs);
        if (typeof outcome === 'object' && outcome.status >= 400)
          this.#world.count(`answer ${outcome.status} ${String(outcome.json.code ?? '')}`);
        resolve(outcome);
      };
      const connection = new Connection(this.#server.receiver(), head, bytes, {
        head: (given) => {
          status = given;
        },
        chunk: (chunk) => void chunks.push(chunk),
        ended: () => settle(answerOf(status, Buffer.concat(chunks).toString())),
        broken: () => settle('unknown'),
        refused: () => settle('refused'),
      });
      const lost = this.#world.after(
        ANSWER_PATIENCE_MS,
        () => {
          this.#world.problem(
            `${method} ${path} was neither answered nor cut off for ${ANSWER_PATIENCE_MS / 1000} s`,
          );
          connection.leave();
          settle('unknown');
        },
        OUTSIDE,
      );
      this.#server.send(connection);
      if (leavesAfterMs === undefined) return;
      this.#world.after(leavesAfterMs, () => {
        if (connection.isOver) return;
        connection.leave();
        settle('unknown');
      });
    });
  }

  /** Opens a stream of events. */
  open(path: string, lastEventId: string, reader: ConstructorParameters<typeof Connection>[3]): Connection {
    const headers = {
      ...headersOf(this.#token, undefined, undefined),
      ...(lastEventId === '' ? {} : { 'last-event-id': lastEventId }),
    };
    const connection = new Connection(
      this.#server.receiver(),
      { method: 'GET', path, headers },
      Buffer.alloc(0),
      reader,
    );
    this.#world.trace.add('follow', `${path} ${lastEventId}`);
    this.#world.count('operations');
    this.#server.send(connection);
    return connection;
  }
}

function headersOf(
  token: string,
  bytes: Buffer | undefined,
  key: string | undefined,
): RequestHead['headers'] {
  return {
    authorization: `Bearer ${token}`,
    'service-workspace-id': WORKSPACE,
    ...(bytes === undefined
      ? {}
      : { 'content-type': 'application/json', 'content-length': String(bytes.length) }),
    ...(key === undefined ? {} : { 'idempotency-key': key }),
  };
}

function answerOf(status: number, text: string): Answer {
  try {
    return { status, text, json: JSON.parse(text) as Answer['json'] };
  } catch {
    return { status, text, json: NOTHING };
  }
}

/** Returns whether the server has answered, and not only said that it cannot, or that its disk is full. */
export function isAnswer(outcome: Outcome): outcome is Answer {
  return typeof outcome === 'object' && outcome.status !== 503 && outcome.status !== 507;
}
