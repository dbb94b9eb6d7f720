/** The client of programs: it finds its server in the environment, repeats requests, and opens notebooks. */
import type { NotebookSession, OpenNotebookSession, Startup } from '../wire/session.ts';
import { unlessAborted } from './abort.ts';
import { CallQueue } from './call-queue.ts';
import { callsOfPrograms, type ProgramCalls } from './client.ts';
import { type ClientOptions, Connection, type RequestOptions } from './connection.ts';
import { closeEnvironment, Session } from './session.ts';

const RETRIES = 4;
const TIMEOUT_S = 60;

/** The options of `createClient`. Missing ones come from the environment: `SERVICE_BASE_URL`, `SERVICE_ACCESS_TOKEN`, `SERVICE_WORKSPACE_ID`. */
export interface TroupeOptions extends Partial<ClientOptions> {}

export interface OpenOptions extends RequestOptions, Omit<Partial<OpenNotebookSession>, 'notebookId'> {
  /** Called with each step for which the start of the kernel waits. */
  readonly startup?: (startup: Startup) => void;
}

/** The session could not start; `session` has the reason. */
export class SessionFailed extends Error {
  readonly session: NotebookSession;

  constructor(session: NotebookSession) {
    const reason = session.error === null ? '' : `: ${session.error.message}`;
    super(`The session ${session.sessionId} is ${session.status}${reason}`);
    this.name = 'SessionFailed';
    this.session = session;
  }
}

/** Has the calls of the API as its members. */
class Calls {
  constructor(connection: Connection) {
    Object.assign(this, callsOfPrograms(connection));
  }
}

const ApiCalls = Calls as new (connection: Connection) => ProgramCalls;

/**
 * A client of one server, for one caller in one workspace. It has the calls of the API that programs need, such as
 * `troupe.notebooks.create`; `send` makes any other request. Requests are repeated four times after a lost connection, 408, 429, 5xx and `idempotency_in_progress`; POSTs take effect once.
 * It needs no closing.
 */
export class Troupe extends ApiCalls {
  readonly #connection: Connection;
  /** The queues of the sessions that the program still uses. */
  readonly #queues = new Map<string, WeakRef<CallQueue>>();
  readonly #unused = new FinalizationRegistry<string>((id) => {
    if (this.#queues.get(id)?.deref() === undefined) this.#queues.delete(id);
  });

  /** Throws `TypeError` when no address of a server is known, or the access token cannot be one. */
  constructor(options: TroupeOptions = {}) {
    const connection = new Connection(withEnvironment(options));
    super(connection);
    this.#connection = connection;
  }

  /**
   * Opens a notebook and resolves with its session when the kernel is ready. A session that is open already is used as it is;
   * otherwise one is opened in `environmentId`, or in a new environment, which is closed with it. Rejects with `SessionFailed` when the
   * kernel cannot start. When it rejects, also with the reason of `signal`, it closes everything that it has opened.
   */
  async open(notebook: string | { readonly id: string }, options: OpenOptions = {}): Promise<Session> {
    const { signal, startup, ...request } = options;
    const notebookId = typeof notebook === 'string' ? notebook : notebook.id;
    const isNew = !(await this.#isOpen(notebookId, signal));
    let environmentId: string | undefined;
    /** Closes the environment and the session that this call has opened. */
    let undo = async () => {};
    try {
      // The signal does not end requests that open something, because the answers have the ids with which they are closed.
      if (isNew) {
        if (request.environmentId === undefined) {
          const created = this.executionEnvironments.create();
          undo = async () => closeEnvironment(this.#connection, (await created).environmentId);
          ({ environmentId } = await unlessAborted(created, signal));
        }
        const closeRest = undo;
        const opened = this.notebookSessions.open({
          ...request,
          notebookId,
          environmentId: request.environmentId ?? environmentId ?? '',
        });
        undo = () =>
          opened
            .then(() => this.notebookSessions.close(notebookId))
            .catch(() => {}) // the session was refused, or has ended by itself
            .then(closeRest);
        await unlessAborted(opened, signal);
      }
      const ready = await this.notebookSessions.waitUntilReady(notebookId, { signal, startup, orBusy: true });
      if (ready.status !== 'ready' && ready.status !== 'busy') throw new SessionFailed(ready);
      return new Session(this.#connection, ready, {
        environmentId,
        isNew,
        queue: this.#queueOf(notebookId),
      });
    } catch (error) {
      // An abort rejects at once, and is undone meanwhile.
      await unlessAborted(undo(), signal).catch(() => {});
      throw error;
    }
  }

  async #isOpen(sessionId: string, signal: AbortSignal | undefined): Promise<boolean> {
    try {
      const { status } = await this.notebookSessions.get(sessionId, { signal });
      return status !== 'closed' && status !== 'closing';
    } catch (error) {
      if (Object(error).status === 404) return false;
      throw error;
    }
  }

  #queueOf(sessionId: string): CallQueue {
    const queue = this.#queues.get(sessionId)?.deref() ?? new CallQueue();
    this.#queues.set(sessionId, new WeakRef(queue));
    this.#unused.register(queue, sessionId);
    return queue;
  }
}

function withEnvironment(options: TroupeOptions): ClientOptions {
  // Browsers have no environment.
  const { process } = globalThis as { process?: { env?: Readonly<Record<string, string | undefined>> } };
  const env = process?.env ?? {};
  const baseUrl = options.baseUrl ?? env.SERVICE_BASE_URL;
  if (baseUrl === undefined || baseUrl === '')
    throw new TypeError('Set SERVICE_BASE_URL, or pass `baseUrl`.');
  return {
    retries: RETRIES,
    timeoutS: TIMEOUT_S,
    accessToken: env.SERVICE_ACCESS_TOKEN || undefined,
    workspaceId: env.SERVICE_WORKSPACE_ID || undefined,
    ...options,
    baseUrl,
  };
}
