/** Replies that wait for the end of a run, so that a simple client needs a single request and no event stream. */
import type { Principal } from '#src/base/caller/principal.ts';
import type { READ_CONDITION } from '#src/contract/wire/operations/parts.ts';
import { pathOf } from '#src/contract/wire/paths.ts';
import type { RunRepository } from '#src/runtime/runs/run-repository.ts';
import { type Submission, submissionJson, submissionOf } from '#src/runtime/runs/submission.ts';
import { REPLAYED } from '../idempotency/idempotency.ts';
import { tagged, unlessKnown, versionTag } from '../reply/entity-tag.ts';
import { type BytesReply, type EmptyReply, encodedJson, type Reply, waiting } from '../reply/reply.ts';

/** Throws when the run belongs to a conversation that the caller may not read, prompt or delete. */
export type GuardRun = (principal: Principal, runId: string, access: 'read' | 'control' | 'delete') => void;

/** The part of a request that a waiting reply depends on. */
interface WaitingRequest {
  readonly principal: Principal;
  readonly query: { readonly wait: number };
  readonly signal: AbortSignal;
}

interface WaitingRead extends WaitingRequest {
  readonly headers: Readonly<Record<keyof typeof READ_CONDITION, string>>;
}

interface ReadRun {
  readonly json: Uint8Array;
  readonly tag: string;
  readonly hasEnded: boolean;
}

/** The path of a run ends with its id, which needs no escaping. */
const PATH_OF_RUNS = pathOf('getRun', { runId: '' });

export class RunWaiting {
  readonly #runs: RunRepository;
  readonly #guard: GuardRun;

  constructor(runs: RunRepository, guard: GuardRun) {
    this.#runs = runs;
    this.#guard = guard;
  }

  /** Returns a reply with the run once it has ended, or with its present state when the time is over. Throws `not_found`. */
  read(request: WaitingRead, runId: string): Reply<never> {
    const read = () => {
      const { json, tag } = this.#read(request, runId);
      return unlessKnown(encodedJson(json), tag, request.headers);
    };
    return this.#waiting(request, runId, read(), read);
  }

  /**
   * Returns the reply to a request that has just submitted a run: the run once it has ended, or 202 with the begun run when the
   * time is over or the run is stale.
   */
  submitted(request: WaitingRequest, submission: Submission): Reply<never> {
    const location = `${PATH_OF_RUNS}${submission.runId}`;
    const accepted = encodedJson(submissionJson(submission), 202, { location });
    return request.query.wait === 0 ? accepted : this.#submitted(request, submission, accepted, {});
  }

  /** Returns the same reply as `submitted`, for a retry of the request that submitted the run. */
  resumed(request: WaitingRequest, first: BytesReply | EmptyReply): Reply {
    const submission = first.kind === 'empty' ? undefined : submissionOf(Buffer.from(first.bytes));
    const { workspaceId } = request.principal;
    if (submission === undefined || !this.#runs.reader.exists(workspaceId, submission.runId)) return first;
    return this.#submitted(request, submission, first, REPLAYED);
  }

  #submitted(
    request: WaitingRequest,
    { runId, lastEventId }: Pick<Submission, 'runId' | 'lastEventId'>,
    accepted: BytesReply | EmptyReply,
    headers: Readonly<Record<string, string>>,
  ): Reply<never> {
    return this.#waiting(request, runId, accepted, (isOver) => {
      if (!isOver) return accepted;
      const { json, tag, hasEnded } = this.#read(request, runId);
      if (!hasEnded) return accepted;
      const answer = submissionJson({ runId, lastEventId, json: [json] });
      return tagged(encodedJson(answer, 200, headers), tag);
    });
  }

  #waiting(
    request: WaitingRequest,
    runId: string,
    accepted: BytesReply | EmptyReply,
    replyOf: (isOver: boolean) => BytesReply | EmptyReply,
  ): Reply<never> {
    const { principal, query } = request;
    if (query.wait === 0) return accepted;
    const ended = this.#runs.ended(principal.workspaceId, runId, query.wait * 1000, request.signal);
    return waiting(
      accepted,
      ended.then((isOver) => () => replyOf(isOver)),
    );
  }

  /** Returns the run. Throws `not_found` when the caller lost the right to read it during the wait. */
  #read({ principal }: WaitingRequest, runId: string): ReadRun {
    this.#guard(principal, runId, 'read');
    const { json, version } = this.#runs.reader.served(principal.workspaceId, runId);
    const hasEnded = version !== 'running' && version !== 'stale';
    return { json, tag: versionTag(version), hasEnded };
  }
}
