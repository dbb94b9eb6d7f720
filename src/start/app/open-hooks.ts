/** Opens hooks: their states, the events for them, their deliveries, and the clock of this worker. */

import type { AgentPlane } from '#src/agent/open-agents.ts';
import type { AsyncDisposableStack } from '#src/base/async/async-disposable-stack.ts';
import { isIdOf, type UserId, type WorkspaceId } from '#src/base/ids.ts';
import { createEgress, resolveBySystem } from '#src/datasource/egress/egress.ts';
import type { SecretStore } from '#src/datasource/keys/secret-store.ts';
import { Deliveries } from '#src/hooks/deliveries.ts';
import { HookStates, hookIdOf } from '#src/hooks/hook-states.ts';
import { Hooks } from '#src/hooks/hooks.ts';
import { HooksIn } from '#src/hooks/hooks-in.ts';
import { shareLookups } from '#src/hooks/name-lookups.ts';
import { Outbox } from '#src/hooks/outbox.ts';
import { send } from '#src/hooks/sender.ts';
import type { TimedWork } from '#src/operate/operators/server-gauges.ts';
import { reaches } from '#src/people/auth/permissions.ts';
import { PlaceClock } from '#src/runtime/homes/place-clock.ts';
import type { RunPlaneContext } from '#src/runtime/sessions/plane-context.ts';
import { hookPlaces } from '#storage/records/hooks.ts';
import type { Ground } from './ground.ts';
import type { JobPlane } from './open-jobs.ts';
import type { NotebookPlane } from './open-notebooks.ts';

export interface HookPlane {
  readonly hooks: Hooks;
  readonly hooksIn: HooksIn;
  /** Returns the figures of this worker's hooks for the metrics, without reading from the store. */
  readonly condition: () => TimedWork;
  /** Frees the memory of a deleted workspace. */
  readonly forget: (workspaceId: string) => void;
  /** Takes up what dead processes have left, and looks for events and deliveries that are due. Called once everything is open. */
  begin(): void;
}

/** The parts of the other planes that hooks use. */
interface HookGround extends Ground, RunPlaneContext {
  readonly log: Ground['log'];
  readonly vault: SecretStore;
  readonly agents: Pick<AgentPlane, 'mayKnow'>;
  readonly notebooks: Pick<NotebookPlane, 'plane'>;
  readonly jobs: Pick<JobPlane, 'states' | 'jobs'>;
}

/** Opens the plane; `stack` ends its timer and its requests. */
export function openHooks(ground: HookGround, stack: AsyncDisposableStack): HookPlane {
  const { agents, cluster, config, identity, jobs, log, notebooks, ownPorts, phase, store, vault } = ground;
  const { members } = identity;
  const states = new HookStates(ground);
  const egress = createEgress({
    listenHost: config.host,
    ownPorts,
    allow: config.egressAllow,
    resolve: shareLookups(resolveBySystem),
  });
  const outbox = new Outbox(ground, states, {
    jobs: jobs.states,
    publicUrl: config.publicUrl,
    onPlace: (moved) => clock.note(moved),
    mayKnow: (workspaceId, userId, sessionId) => {
      const reader = members.reader(workspaceId, userId);
      return reader !== undefined && agents.mayKnow(reader, sessionId);
    },
  });
  notebooks.plane.onFailed(({ workspaceId, id }, reason) =>
    outbox.note(workspaceId, { type: 'session.failed', notebookId: id, reason }),
  );
  const deliveries = stack.use(
    new Deliveries(ground, states, {
      send: (message, signal) => send(egress, message, signal),
      openSecret: (workspaceId, name) => vault.open(workspaceId, name),
      roleOf: (workspaceId: WorkspaceId, userId: UserId) => members.reader(workspaceId, userId)?.role,
      mayHaveHooks: (role) => reaches(role, 'editor'),
    }),
  );
  const mayFire = (workspaceId: WorkspaceId, userId: UserId) => {
    const role = members.reader(workspaceId, userId)?.role;
    return role !== undefined && reaches(role, 'editor');
  };
  const isEvent = (id: string) => isIdOf('hookEvent', id);
  const clock = stack.use(
    new PlaceClock({
      store,
      log,
      index: hookPlaces,
      isHere: (workspaceId) => cluster.owns(workspaceId),
      placeOf: (workspaceId, id) => (isEvent(id) ? outbox : states).placeOf(workspaceId, id),
      attend(workspaceId, id, nowMs) {
        if (isEvent(id)) outbox.attend(workspaceId as WorkspaceId, id);
        else deliveries.attend(hookIdOf(workspaceId, id), nowMs);
      },
      isEnding: () => phase.isDraining,
    }),
  );
  states.onPlace((moved) => clock.note(moved));
  return {
    hooks: new Hooks(ground, states, outbox, vault, agents.mayKnow),
    hooksIn: new HooksIn(ground, jobs.jobs, vault, { publicUrl: config.publicUrl, mayFire }),
    condition: () => ({ overdueS: clock.overdueMs(Date.now()) / 1000, counts: states.tally.counts() }),
    forget: (workspaceId) => states.tally.forget(workspaceId),
    begin() {
      if (store.isReadOnly) return;
      const look = () => {
        deliveries.recover();
        clock.look();
        states.tally.load();
      };
      look();
      cluster.onSlotsTaken(look);
      // A worker that has died may have stored events without asking their homes to look.
      cluster.onWorkersChanged(({ gone }) => {
        if (gone.length > 0) clock.look();
      });
    },
  };
}
