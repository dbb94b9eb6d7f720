/** An event of an actor, as followers get it. */
import type { ActorStreamEnvelope } from '#src/contract/wire/actor.ts';
import type { JoinedChange } from './actor-changes.ts';
import { adviceOf } from './chart.ts';
import { statePath } from './state-path.ts';

/** Returns the event for a change, with the actor's state at this moment. */
export function envelopeOf(change: JoinedChange): ActorStreamEnvelope {
  const { kind, id } = change.address;
  switch (change.type) {
    case 'moved': {
      const { actor, from, events } = change;
      return {
        type: 'actor.moved',
        data: {
          kind,
          id,
          machine: actor.machine.id,
          from: from === undefined ? null : statePath(from),
          to: statePath(actor.state),
          since: actor.updatedAt,
          revision: actor.revision,
          links: actor.shown().links,
          events,
        },
      };
    }
    case 'refused': {
      const { state, event, code, count } = change;
      return { type: 'actor.refused', data: { kind, id, state, event, code, count, ...adviceOf(code) } };
    }
    case 'left': {
      const { state, presence } = change;
      return { type: 'actor.left', data: { kind, id, state, presence } };
    }
  }
}
