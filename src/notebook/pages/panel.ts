/**
 * The panels of marimo's page that are about the workspace of a notebook and not about its session. Their requests need no kernel,
 * and are carried out in the home of the workspace.
 */

import { allows, type PageAccess } from '#src/base/caller/page-access.ts';
import { AppError, notFound } from '#src/base/errors/errors.ts';
import type { WorkspaceId } from '#src/base/ids.ts';
import { ShapeError } from '#src/confined/processes/json-shape.ts';
import type { AuditContext, AuditedChange, AuditTrail } from '#src/people/audit/audit-trail.ts';

type Body = Readonly<Record<string, unknown>>;

/** A request of a panel, whose caller is known. */
export interface PanelRequest {
  readonly context: AuditContext;
  readonly notebookId: string;
  readonly method: 'GET' | 'POST';
  /** The path below the address of the page, such as `api/packages/list`. */
  readonly path: string;
  readonly body: unknown;
  /** Aborts when the page leaves. */
  readonly signal: AbortSignal;
}

/** The parts of a request that an operation uses. */
export interface PanelCall {
  readonly workspaceId: WorkspaceId;
  readonly userId: string;
  readonly notebookId: string;
  readonly signal: AbortSignal;
  /** Notes changes in the audit. */
  readonly note: (...changes: readonly AuditedChange[]) => void;
}

export interface PanelOperation<Panel> {
  readonly method: 'GET' | 'POST';
  /** The least access that the operation needs. */
  readonly access: PageAccess;
  /** Returns the JSON of the answer. Throws `ShapeError` for a body of another shape. */
  readonly handle: (panel: Panel, call: PanelCall, body: Body) => unknown;
}

/** The facts of sessions on which the rights of a page depend. */
export interface PanelSessions {
  /** Returns the mode of a session, and wakes nothing; undefined when it is closed. Throws `not_found`. */
  modeOf(workspaceId: WorkspaceId, notebookId: string): 'edit' | 'run' | undefined;
}

export interface PanelPorts {
  readonly sessions: PanelSessions;
  readonly audit: Pick<AuditTrail, 'note'>;
}

/**
 * Resolves with the JSON of the answer to a request. Rejects with `not_found` for one that Troupe does not offer, `session_closed`,
 * `role_too_low` for one that the page has no access to, `session_not_editable` for a change while the session runs the notebook as
 * an app, and `invalid_request`.
 */
export async function answerPanel<Panel>(
  operations: ReadonlyMap<string, PanelOperation<Panel>>,
  panel: Panel,
  ports: PanelPorts,
  request: PanelRequest,
): Promise<unknown> {
  const operation = operations.get(request.path);
  if (operation?.method !== request.method) throw notFound();
  const call = admit(ports, request, operation.access);
  return checkedShape(() => operation.handle(panel, call, Object(request.body) as Body));
}

/** Resolves with the result of `handle`, and rejects with `invalid_request` in place of a `ShapeError`. */
export async function checkedShape<T>(handle: () => T | Promise<T>): Promise<T> {
  try {
    return await handle();
  } catch (error) {
    if (error instanceof ShapeError) throw new AppError('invalid_request', error.message);
    throw error;
  }
}

/** Returns the call of a request with this access. Throws the refusals of `answerPanel`. */
export function admit(
  { sessions, audit }: PanelPorts,
  { context, notebookId, signal }: Pick<PanelRequest, 'context' | 'notebookId' | 'signal'>,
  access: PageAccess,
): PanelCall {
  const { workspaceId, userId, pageAccess = 'view' } = context.principal;
  const mode = sessions.modeOf(workspaceId, notebookId);
  if (mode === undefined)
    throw new AppError('session_closed', 'The session of this notebook is closed. Open it again first.');
  if (!allows(pageAccess, access))
    throw new AppError('role_too_low', 'This page may only show the notebook, not change anything.');
  if (access === 'edit' && mode === 'run')
    throw new AppError('session_not_editable', 'The session runs this notebook as an app.');
  return {
    workspaceId,
    userId,
    notebookId,
    signal,
    note: (...changes) => audit.note(context, ...changes),
  };
}

/** Returns the result of a change in the form in which panels show it: a refusal is an answer with its reason. */
export async function outcomeOf(change: () => unknown): Promise<unknown> {
  try {
    return { success: true, ...Object(await change()) };
  } catch (error) {
    if (error instanceof AppError) return { success: false, error: error.message, message: error.message };
    throw error;
  }
}
