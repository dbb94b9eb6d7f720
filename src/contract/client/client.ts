/** The API as typed calls. Every call takes a `signal`; every POST takes an `idempotencyKey`. */
import type { StreamEvent } from '../wire/events.ts';
import { agentSessions } from './agent-sessions.ts';
import { code } from './code.ts';
import { type ClientOptions, Connection, type OutgoingRequest, type RequestOptions } from './connection.ts';
import { datasources } from './datasources.ts';
import { type FollowOptions, followEvents } from './event-stream.ts';
import { executions } from './executions.ts';
import { files } from './files.ts';
import { notebookSessions } from './notebook-sessions.ts';
import { notebooks } from './notebooks.ts';
import { operations } from './operations.ts';
import { resourcesOfOperators, resourcesOfPrograms } from './resources.ts';
import { runs } from './runs.ts';

/** The client need not be closed. */
export function createClient(options: ClientOptions) {
  return clientOn(new Connection(options));
}

/** Returns every call of the API on a connection. */
function clientOn(connection: Connection) {
  return {
    ...operations(connection),
    ...callsOfPrograms(connection),
    /** Sends any other request, and resolves once the head of its response has arrived. The caller reads the body. */
    open: (request: OutgoingRequest) => connection.open(request),
    ...resourcesOfOperators(connection),
  };
}

/** Returns the calls that programs need to work in a workspace, without those of owners and operators. */
export function callsOfPrograms(connection: Connection) {
  const allRuns = runs(connection);
  return {
    ...resourcesOfPrograms(connection),
    notebooks: notebooks(connection),
    files: files(connection),
    notebookSessions: notebookSessions(connection),
    executions: executions(connection),
    code: code(connection),
    agentSessions: agentSessions(connection),
    runs: allRuns,
    datasources: datasources(connection),
    /** Yields the events of any stream, by its path. */
    followEvents: <Event extends StreamEvent = StreamEvent>(path: string, follow: FollowOptions = {}) =>
      followEvents<Event>(connection, path, follow),
    waitForRun: (runId: string, wait: RequestOptions = {}) => allRuns.wait(runId, wait),
    /** Sends any other request whose response is JSON. */
    send: <T>(request: OutgoingRequest<T>) => connection.json<T>(request),
  };
}

export type Client = ReturnType<typeof createClient>;
/** The calls of `callsOfPrograms`. */
export type ProgramCalls = ReturnType<typeof callsOfPrograms>;
