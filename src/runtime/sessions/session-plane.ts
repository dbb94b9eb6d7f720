import type { SessionNotice } from '#machines/any-session.ts';
import type { Failure } from '#src/base/errors/errors.ts';
import { timestamp } from '#src/base/time/clock.ts';
import type { Envelope } from '#src/contract/wire/events.ts';
import type { RunKind } from '#src/contract/wire/run.ts';
import type { ResyncReason } from '#src/contract/wire/shape.ts';
import type { ActorId } from '../actors/address.ts';
import type { EventSink, Subscription } from '../events/event-sink.ts';
import type { SubscribeOptions } from '../events/published-stream.ts';
import type { SessionStream } from '../events/session-stream.ts';
import type { RunRepository } from '../runs/run-repository.ts';
import { closedEvent, type LiveSession, type LiveSessions } from './live-sessions.ts';

/** The actors of one kind of session, with the members that both kinds have. */
export interface AnySessionActors {
  on(
    listener: (session: ActorId, notice: SessionNotice<string>, committed: Promise<void> | undefined) => void,
  ): void;
  tell(session: ActorId, event: { type: 'suspend'; failure: Failure }): boolean;
  residents(): readonly ActorId[];
}

export interface SessionPlaneOptions<Live extends LiveSession> {
  readonly actors: AnySessionActors;
  readonly live: LiveSessions<Live>;
  /** The kind of run that these sessions have. */
  readonly runKind: RunKind;
}

/** The parameters of a request for an event stream. */
export interface StreamRequest {
  readonly lastEventId: string;
  /** Whether the subscriber only observes: no session is woken, loaded or kept in memory for the subscriber. */
  readonly observe: boolean;
}

/**
 * The common part of notebook sessions and agent sessions. Notices of their actors and statuses of their runs become events of
 * their streams. Sessions are followed, and are suspended when the server ends. The work of a session is in the plane of its
 * kind.
 */
export class SessionPlane<Live extends LiveSession> {
  readonly #runs: RunRepository;
  readonly #options: SessionPlaneOptions<Live>;
  #onFailed: (session: ActorId, reason: string | null) => void = () => undefined;

  constructor(runs: RunRepository, options: SessionPlaneOptions<Live>) {
    this.#runs = runs;
    this.#options = options;
    const { actors, live, runKind } = options;
    actors.on((session, notice, committed) => this.#publish(session, notice, committed));
    runs.actors.on(({ workspaceId }, { kind, sessionId, runId, status, error }, committed) => {
      if (kind !== runKind) return;
      const createdBy = runs.createdBy(workspaceId, runId);
      const event = runStatusEvent(sessionId, { id: runId, status, error, createdBy }, timestamp());
      live.peek({ workspaceId, id: sessionId })?.publishRunStatus(event, committed);
    });
  }

  /** Sets the listener for sessions that fail. It is called in the turn of the failure, whose commit has its writes. */
  onFailed(listener: (session: ActorId, reason: string | null) => void): void {
    this.#onFailed = listener;
  }

  /** Returns a function that attaches a subscriber to the stream of a session that is not closed. */
  follow(
    session: ActorId,
    { lastEventId, replay, observes = false }: SubscribeOptions<Envelope>,
  ): (sink: EventSink) => Subscription {
    const { live } = this.#options;
    return (sink) => {
      const attach = (stream: SessionStream) =>
        stream.subscribe(sink, { ...(lastEventId !== undefined && { lastEventId }), replay, observes });
      return observes ? live.observe(session, attach) : attach(live.of(session).stream);
    };
  }

  /**
   * Returns the status of the newest run as an event, because a subscriber that was away may have
   * missed the run's end.
   */
  latestRunStatus({ workspaceId, id }: ActorId): Envelope<'run-status'> | undefined {
    const { runKind } = this.#options;
    const run = this.#runs.reader.latest(workspaceId, id, runKind);
    if (run === undefined) return undefined;
    const event = runStatusEvent(id, run, run.finishedAt ?? run.createdAt);
    return run.stale === true ? { ...event, data: { ...event.data, stale: true } } : event;
  }

  /** Ends the work of every session, because the server ends; the sessions stay open. */
  suspendAll(failure: Failure): void {
    const { actors } = this.#options;
    for (const session of actors.residents()) actors.tell(session, { type: 'suspend', failure });
  }

  /**
   * Removes from memory the sessions about which another worker decides from now on. None of these sessions is working.
   */
  leaveTo(isElsewhere: (workspaceId: string, id: string) => boolean): void {
    this.#options.live.leaveTo(isElsewhere);
  }

  /** Makes every subscriber connect again, and ends its stream. */
  resyncAll(reason: ResyncReason): void {
    for (const stream of this.#options.live.streams()) stream.resync(reason);
  }

  #publish(session: ActorId, notice: SessionNotice<string>, committed: Promise<void> | undefined): void {
    const { live } = this.#options;
    if (notice.type === 'session.closed') {
      live.retire(session)?.end(closedEvent(session, notice.closedBy), committed);
      return;
    }
    const { status, reason } = notice;
    if (status === 'failed') this.#onFailed(session, reason);
    const data = { status, ...(reason === null ? {} : { reason }) };
    live.streamOf(session)?.publish({ type: 'session.status', sessionId: session.id, data }, committed);
  }
}

interface RunStatus {
  readonly id: string;
  readonly status: string;
  readonly error: Failure | null;
  readonly createdBy?: string | undefined;
}

function runStatusEvent(
  sessionId: string,
  { id: runId, status, error, createdBy }: RunStatus,
  time: string,
): Envelope<'run-status'> {
  const data = {
    runId,
    status,
    ...(createdBy === undefined ? {} : { createdBy }),
    ...(error === null ? {} : { error }),
  };
  return { type: 'run-status', sessionId, runId, time, data };
}
