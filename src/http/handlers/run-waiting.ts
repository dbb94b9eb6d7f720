/** Replies that wait for the end of a run, so that a simple client needs one request and no event stream. */
import type { Principal } from '#src/core/principal.ts';
import type { RunRepository } from '#src/runs/run-repository.ts';
import type { READ_CONDITION } from '#src/wire/operations/parts.ts';
import { REPLAYED } from '../idempotency/idempotency.ts';
import { tagged, unlessKnown, versionTag } from '../reply/entity-tag.ts';
import {
  type BytesReply,
  type EmptyReply,
  encodedJson,
  type PlainReply,
  type Reply,
  waiting,
} from '../reply/reply.ts';

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
  readonly reply: BytesReply;
  readonly tag: string;
  readonly hasEnded: boolean;
}

export class RunWaiting {
  readonly #runs: RunRepository;
  readonly #guard: GuardRun;

  constructor(runs: RunRepository, guard: GuardRun) {
    this.#runs = runs;
    this.#guard = guard;
  }

  /** Returns the run once it has ended, or as it is when the time is over. Throws `not_found`. */
  read(request: WaitingRead, runId: string): Reply<never> {
    const read = () => {
      const { reply, tag } = this.#read(request, runId);
      return unlessKnown(reply, tag, request.headers);
    };
    return this.#waiting(request, runId, read(), read);
  }

  /** Returns the run that a request has submitted, once it has ended; `accepted` when the time is over or the run is stale. */
  submitted<Value>(request: WaitingRequest, runId: string, accepted: PlainReply<Value>): Reply<Value> {
    return request.query.wait === 0 ? accepted : this.#submitted(request, runId, accepted, {});
  }

  /** As `submitted`, for a retry of the request that submitted the run. */
  resumed(request: WaitingRequest, first: BytesReply | EmptyReply): Reply {
    const runId = submittedRunOf(first);
    if (runId === undefined || !this.#runs.reader.exists(request.principal.workspaceId, runId)) return first;
    return this.#submitted(request, runId, first, REPLAYED);
  }

  #submitted<Value>(
    request: WaitingRequest,
    runId: string,
    accepted: PlainReply<Value>,
    headers: Readonly<Record<string, string>>,
  ): Reply<Value> {
    return this.#waiting(request, runId, accepted, (isOver) => {
      if (!isOver) return accepted;
      const { reply, tag, hasEnded } = this.#read(request, runId);
      return hasEnded ? tagged({ ...reply, headers }, tag) : accepted;
    });
  }

  #waiting<Value>(
    request: WaitingRequest,
    runId: string,
    accepted: PlainReply<Value>,
    replyOf: (isOver: boolean) => PlainReply<Value>,
  ): Reply<Value> {
    const { principal, query } = request;
    if (query.wait === 0) return accepted;
    const ended = this.#runs.ended(principal.workspaceId, runId, query.wait * 1000, request.signal);
    return waiting(accepted, ended.then(replyOf));
  }

  /** Returns the run, which the caller may no longer read after a wait. Throws `not_found`. */
  #read({ principal }: WaitingRequest, runId: string): ReadRun {
    this.#guard(principal, runId, 'read');
    const { json, version } = this.#runs.reader.served(principal.workspaceId, runId);
    const hasEnded = version !== 'running' && version !== 'stale';
    return { reply: encodedJson(json), tag: versionTag(version), hasEnded };
  }
}

function submittedRunOf(first: BytesReply | EmptyReply): string | undefined {
  if (first.kind === 'empty') return undefined;
  const { runId }: { runId?: unknown } = JSON.parse(Buffer.from(first.bytes).toString('utf8'));
  return typeof runId === 'string' ? runId : undefined;
}
