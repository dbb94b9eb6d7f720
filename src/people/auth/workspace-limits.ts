/**
 * The limits of each workspace: those of the settings, unless the operator has set others for it. They are read from the store for
 * each decision, so a change applies at once in every worker.
 */

import { unawaited } from '#src/base/async/unawaited.ts';
import type { TokenHolder } from '#src/base/caller/principal.ts';
import { AppError, notFound } from '#src/base/errors/errors.ts';
import type { WorkspaceId } from '#src/base/ids.ts';
import type { NewWorkspaceLimits, WorkspaceLimits as Shown } from '#src/contract/wire/identity.ts';
import type { Cluster } from '#src/runtime/homes/cluster.ts';
import { SYSTEM } from '#storage/keys.ts';
import { accessTokenRecords, memberRecords, workspaceExists } from '#storage/records/identity.ts';
import {
  LIMIT_NAMES,
  type LimitName,
  type Limits,
  workspaceLimitRecords,
} from '#storage/records/workspace-limits.ts';
import type { Identity } from './identity.ts';

/** The scope with which a token sets limits. */
const SCOPE = 'server:manage';

export class LimitsOfWorkspaces {
  readonly #identity: Identity;
  readonly #defaults: Limits;
  /** Applies the new limits to the things that exist in this worker. */
  #settle: (workspaceId: string) => Promise<void> = async () => undefined;

  constructor(identity: Identity, cluster: Pick<Cluster, 'onAsked'>, defaults: Limits) {
    this.#identity = identity;
    this.#defaults = defaults;
    cluster.onAsked('limits-changed', async (workspaceId) => {
      identity.store.refresh();
      await this.#settle(String(workspaceId));
    });
  }

  /**
   * Sets the listener that every worker calls after the limits of a workspace have changed, before the response is
   * sent.
   */
  onChange(settle: (workspaceId: string) => Promise<void>): void {
    this.#settle = settle;
  }

  /** Returns one limit of a workspace; 0 means no limit. */
  of(workspaceId: WorkspaceId, name: LimitName): number {
    return this.all(workspaceId)[name];
  }

  /** Returns all limits of a workspace. */
  all(workspaceId: WorkspaceId): Limits {
    const record = this.#identity.store.get(workspaceLimitRecords, workspaceId);
    return record === undefined ? this.#defaults : { ...this.#defaults, ...record.values };
  }

  /** Returns the limits of a workspace for the client. Throws `not_found` unless the caller is a member or an operator of the server. */
  read(holder: TokenHolder, workspaceId: string): Shown {
    const { store } = this.#identity;
    const isOperator = mayManage(holder);
    const boundTo = store.get(accessTokenRecords, SYSTEM, holder.tokenId)?.workspaceId ?? workspaceId;
    const isMember = boundTo === workspaceId && store.has(memberRecords, workspaceId, holder.userId);
    if (!workspaceExists(store, workspaceId) || !(isOperator || isMember)) throw notFound();
    return this.#shown(workspaceId as WorkspaceId);
  }

  /** Throws `missing_scope` unless the caller is an operator of the server. */
  checkChange(holder: TokenHolder): void {
    if (mayManage(holder)) return;
    throw new AppError(
      'missing_scope',
      `Limits are set with a token that has the scope ${SCOPE} and is not bound to a workspace.`,
    );
  }

  /**
   * Sets the limits of a workspace; absent and null ones follow the settings. Call it in a shared turn. Throws `missing_scope` and
   * `not_found`.
   */
  replace(holder: TokenHolder, workspaceId: string, limits: NewWorkspaceLimits): Shown {
    this.checkChange(holder);
    const identity = this.#identity;
    if (!workspaceExists(identity.store, workspaceId)) throw notFound();
    const values = Object.fromEntries(
      LIMIT_NAMES.flatMap((name) => (limits[name] == null ? [] : [[name, limits[name]]])),
    );
    const record = { values, updatedAt: identity.timestamp(), updatedBy: holder.userId };
    identity.store.write((tx) => tx.put(workspaceLimitRecords, record, workspaceId));
    unawaited(
      this.#settle(workspaceId).catch(() => undefined),
      'workspace-limits: the settling of limits',
    ); // the reply waits for the commit of these limits anyway
    identity.announce('limits-changed', workspaceId);
    return this.#shown(workspaceId as WorkspaceId);
  }

  #shown(workspaceId: WorkspaceId): Shown {
    const record = this.#identity.store.get(workspaceLimitRecords, workspaceId);
    const limits = this.all(workspaceId);
    const inForce = LIMIT_NAMES.map((name) => [name, limits[name] || null] as const);
    return {
      ...(Object.fromEntries(inForce) as Record<LimitName, number | null>),
      workspaceId,
      set: LIMIT_NAMES.filter((name) => record?.values[name] !== undefined),
      updatedAt: record?.updatedAt ?? null,
      updatedBy: record?.updatedBy ?? null,
    };
  }
}

function mayManage({ scopes, isBound }: TokenHolder): boolean {
  return scopes.includes(SCOPE) && !isBound;
}
