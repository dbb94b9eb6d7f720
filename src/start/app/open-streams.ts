/** Opens the shared parts of event streams, and the stream of actors. */

import type { AsyncDisposableStack } from '#src/base/async/async-disposable-stack.ts';
import type { SessionId } from '#src/base/ids.ts';
import type { MirrorMaker } from '#src/cluster/peers/feeds.ts';
import type { ActorStreamEnvelope } from '#src/contract/wire/actor.ts';
import type { ServerStreamEnvelope } from '#src/contract/wire/server.ts';
import type { ResyncReason } from '#src/contract/wire/shape.ts';
import type { PageStreams } from '#src/notebook/pages/page-stream.ts';
import type { ServerStream } from '#src/operate/operators/server-events.ts';
import type { ActorEvents } from '#src/runtime/actors/actor-events.ts';
import type { ActorReporter } from '#src/runtime/actors/actor-reporter.ts';
import { Heartbeats } from '#src/runtime/events/heartbeats.ts';
import { MirroredStream } from '#src/runtime/events/mirrored-stream.ts';
import type { ProcessStreams } from '#src/runtime/events/process-streams.ts';
import { PublishedStream } from '#src/runtime/events/published-stream.ts';
import { SessionStream } from '#src/runtime/events/session-stream.ts';
import { StreamBudget } from '#src/runtime/events/stream-budget.ts';
import type { PlaneContext } from '#src/runtime/sessions/plane-context.ts';
import { openActorEvents } from './open-actor-events.ts';

const MIB = 1024 * 1024;
/**
 * The share of a session's stream buffer that a conversation keeps for subscribers that reconnect. It is small because each token
 * is an event ten times its size, and a late subscriber gets the answer so far in any case.
 */
const CONVERSATION_RESUME_SHARE = 1 / 32;

export interface Streams {
  /** Creates the local mirror of another worker's stream. */
  readonly makeMirror: MirrorMaker;
  /** Makes the stream of a notebook session. */
  readonly makeStream: (sessionId: SessionId) => SessionStream;
  readonly makeConversationStream: (sessionId: SessionId) => SessionStream;
  readonly actorEvents: ActorEvents;
  /** Reports to other workers the actors that are followed there. */
  readonly actorReporter: ActorReporter;
  /** The resources that streams of pages in browsers share with all other streams. */
  readonly pageStreams: PageStreams;
  /** Carries the load of the server. */
  readonly serverStream: ServerStream;
}

/** Each worker has an equal share of the memory for streams. The opened resources are closed with `stack`. */
export function openStreams(
  context: Pick<PlaneContext, 'config' | 'cluster' | 'runtime' | 'store' | 'metrics'>,
  stack: AsyncDisposableStack,
): Streams {
  const { config, cluster, metrics } = context;
  const options: ProcessStreams = {
    limitBytes: config.subscriberBufferBytes,
    heartbeats: stack.use(new Heartbeats(config.heartbeatS * 1000)),
    budget: new StreamBudget((config.streamMemoryMb * MIB) / cluster.size),
    onCutOff: (reason: ResyncReason) => metrics.streamCutoffs.of(reason).add(),
  };
  const { actorEvents, actorReporter } = openActorEvents(
    context,
    () =>
      new PublishedStream<ActorStreamEnvelope>({
        ...options,
        replayed: { type: 'actors.replayed', data: {} },
        resync: (reason) => ({ type: 'actors.resync-required', data: { reason } }),
      }),
    stack,
  );
  return {
    makeMirror: (head, press) => new MirroredStream(head, options, press),
    makeStream: (sessionId) => new SessionStream({ ...options, sessionId }),
    makeConversationStream: (sessionId) =>
      new SessionStream({ ...options, sessionId, resumeShare: CONVERSATION_RESUME_SHARE }),
    actorEvents,
    actorReporter,
    pageStreams: { budget: options.budget, onCutOff: options.onCutOff },
    serverStream: new PublishedStream<ServerStreamEnvelope>({
      ...options,
      replayed: { type: 'server.replayed', data: {} },
      resync: (reason) => ({ type: 'server.resync-required', data: { reason } }),
    }),
  };
}
