import { RunCancellation } from '#src/http/handlers/run-cancellation.ts';
import type { RunWaiting } from '#src/http/handlers/run-waiting.ts';
import type { Route } from '#src/http/route.ts';
import { actorRoutes } from '#src/http/routes/actors.ts';
import { agentSessionGrantRoutes, agentSessionRoutes } from '#src/http/routes/agent-sessions.ts';
import { modelRoutes } from '#src/http/routes/models.ts';
import { runRoutes } from '#src/http/routes/runs.ts';
import { actorsOfAll } from '#src/operate/operators/actors-of-all.ts';
import type { Planes } from './open-planes.ts';

/** Returns the routes of conversations, of the runs of notebooks and conversations, and of actors. */
export function agentRoutes(planes: Planes, waiting: RunWaiting): readonly Route[] {
  const { agents, cluster, identity, notebooks, runs, runtime, store, streams } = planes;
  const cancellation = new RunCancellation(planes, agents.guardRun, (kind, workspaceId, sessionId, runId) =>
    (kind === 'agent' ? agents.prompts : notebooks.executions).cancel(workspaceId, sessionId, runId),
  );
  return [
    ...agentSessionRoutes(agents, identity.tickets, waiting),
    ...agentSessionGrantRoutes(agents.access),
    ...modelRoutes(agents.models, agents.keys, agents.testModel),
    ...runRoutes(planes, { cancellation, waiting, agents }),
    ...actorRoutes(actorsOfAll(runtime, store, cluster), streams.actorEvents, runs.reader),
  ];
}
