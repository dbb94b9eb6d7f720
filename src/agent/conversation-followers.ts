import type { Principal } from '#src/base/caller/principal.ts';
import type { EventSink, Subscription } from '#src/runtime/events/event-sink.ts';

interface Follower {
  readonly principal: Principal;
  readonly sessionId: string;
  readonly sink: EventSink;
}

/**
 * The open event streams of conversations. A stream ends when its caller may no longer read the conversation.
 */
export class ConversationFollowers {
  readonly #followers = new Set<Follower>();

  /** Returns a function that attaches a subscriber and notes it until its subscription is closed. */
  noted(
    principal: Principal,
    sessionId: string,
    attach: (sink: EventSink) => Subscription,
  ): (sink: EventSink) => Subscription {
    return (sink) => {
      const follower = { principal, sessionId, sink };
      this.#followers.add(follower);
      const subscription = attach(sink);
      return {
        probe: () => subscription.probe(),
        cutOff: (reason) => subscription.cutOff(reason),
        writable: () => subscription.writable(),
        close: () => {
          this.#followers.delete(follower);
          subscription.close();
        },
      };
    };
  }

  /** Ends the streams of a conversation whose callers may not read it. */
  endUnless(workspaceId: string, sessionId: string, mayRead: (principal: Principal) => boolean): void {
    for (const { principal, sessionId: followed, sink } of this.#followers) {
      const isOfThis = followed === sessionId && principal.workspaceId === workspaceId;
      if (isOfThis && !mayRead(principal)) sink.end();
    }
  }
}
