/** Finds the home of a request: the one worker that decides everything about its notebook, conversation or workspace. */

import type { Principal } from '#src/base/caller/principal.ts';
import type { Home } from '#src/runtime/homes/slots.ts';
import type { AnyRouteRequest, Route } from '../route.ts';
import type { Forwarding } from './http-context.ts';

/** Takes the place of a workspace in requests about the whole server. */
const WHOLE_SERVER = '*';

/** The parameters of paths that name a notebook or conversation. Each of these has a home of its own. */
const NAMING: readonly string[] = ['sessionId', 'notebookId'];

/** A request whose home is to be found. */
interface HomedRequest extends AnyRouteRequest {
  home: Home | undefined;
  elsewhere: number | undefined;
}

interface HomedRoute {
  readonly route: Route;
  readonly homeParam: string | undefined;
}

/** Returns the parameter by which the path names a notebook or conversation; undefined when it names neither. */
export function homeParamOf(paramNames: readonly string[]): string | undefined {
  return paramNames.find((name) => NAMING.includes(name));
}

/**
 * Notes the home of the request, and the slot of that home if another worker has it. A request that any worker may answer gets no
 * home, so it does not delay a slot that is to move.
 */
export function findHome(
  request: HomedRequest,
  prepared: HomedRoute,
  forwarding: Pick<Forwarding, 'elsewhere'>,
): void {
  const { principal } = request;
  const { route } = prepared;
  if (principal === undefined || route.home === 'any' || readsStoreOnly(route, request)) return;
  const home = homeOf(prepared, request, principal);
  request.home = home;
  request.elsewhere = home && forwarding.elsewhere(home.workspaceId, home.id);
}

function homeOf(
  { route, homeParam }: HomedRoute,
  request: AnyRouteRequest,
  { workspaceId }: Principal,
): Home | undefined {
  if (route.home === 'server') return { workspaceId: WHOLE_SERVER };
  if (route.home === 'named-workspace') return { workspaceId: request.params.workspaceId ?? '' };
  if (route.home === 'workspace') return { workspaceId };
  if (homeParam !== undefined) return { workspaceId, id: request.params[homeParam] };
  if (route.homeOf === undefined) return { workspaceId };
  const about = route.homeOf(request);
  return about && { workspaceId, id: about.id };
}

function readsStoreOnly({ readsStoreOnly }: Route, { query }: AnyRouteRequest): boolean {
  return typeof readsStoreOnly === 'function' ? readsStoreOnly(Object(query)) : readsStoreOnly === true;
}
