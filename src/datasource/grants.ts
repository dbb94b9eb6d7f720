import type { Principal } from '#src/base/caller/principal.ts';
import { AppError, notFound } from '#src/base/errors/errors.ts';
import { timestamp } from '#src/base/time/clock.ts';
import type { DatasourceGrant } from '#src/contract/wire/datasource.ts';
import type { AuditContext, AuditTrail } from '#src/people/audit/audit-trail.ts';
import { type DatasourceGrantRecord, datasourceGrants } from '#storage/records/datasources.ts';
import { memberRecords } from '#storage/records/identity.ts';
import type { Store } from '#storage/store.ts';
import type { Subject } from './access.ts';
import type { Datasources } from './datasources.ts';

/** Grants of datasources. Every caller with the right to read a datasource may share it and revoke its grants. */
export class DatasourceGrants {
  readonly #store: Store;
  readonly #datasources: Datasources;
  readonly #audit: AuditTrail;

  constructor(store: Store, datasources: Datasources, audit: AuditTrail) {
    this.#store = store;
    this.#audit = audit;
    this.#datasources = datasources;
  }

  /** Throws `not_found` when the caller may not share the datasource. */
  checkSharing(principal: Principal, slug: string): void {
    this.#datasources.readable(principal, slug);
  }

  /** Returns all grants of a datasource. Throws `not_found` when the caller may not read it. */
  list({ principal }: Pick<AuditContext, 'principal'>, slug: string): DatasourceGrant[] {
    this.#datasources.readable(principal, slug);
    const all = { limit: Number.POSITIVE_INFINITY };
    return [...this.#store.list(datasourceGrants, principal.workspaceId, [slug], all)].map(({ id, value }) =>
      grantOf(id, value),
    );
  }

  /**
   * Adds a grant and returns it; an existing one is unchanged. Throws `not_found`, and `invalid_request` for a user who
   * is not a member of the workspace.
   */
  add(actor: AuditContext, slug: string, subject: Subject): DatasourceGrant {
    const { workspaceId, userId } = actor.principal;
    this.#datasources.readable(actor.principal, slug);
    const user = subject.startsWith('user:') ? subject.slice('user:'.length) : undefined;
    if (user !== undefined && this.#store.get(memberRecords, workspaceId, user) === undefined) {
      throw new AppError('invalid_request', 'Datasources can only be shared with members of the workspace.', {
        errors: [{ path: '/subject', message: 'is not a member of this workspace' }],
      });
    }
    return this.#store.write((tx) => {
      const known = tx.get(datasourceGrants, workspaceId, slug, subject);
      if (known !== undefined) return grantOf(subject, known);
      const grant = { grantedBy: userId, createdAt: timestamp() };
      tx.put(datasourceGrants, grant, workspaceId, slug, subject);
      this.#audit.note(actor, {
        action: 'datasource.share',
        target: slug,
        outcome: 'done',
        detail: subject,
      });
      return grantOf(subject, grant);
    });
  }

  /** Revokes a grant. Throws `not_found` when there is none, or the caller may not read the datasource. */
  remove(actor: AuditContext, slug: string, subject: string): void {
    const { workspaceId } = actor.principal;
    this.#datasources.readable(actor.principal, slug);
    this.#store.write((tx) => {
      if (tx.get(datasourceGrants, workspaceId, slug, subject) === undefined) throw notFound();
      tx.remove(datasourceGrants, workspaceId, slug, subject);
      this.#audit.note(actor, {
        action: 'datasource.unshare',
        target: slug,
        outcome: 'done',
        detail: subject,
      });
    });
  }
}

function grantOf(subject: string, { grantedBy, createdAt }: DatasourceGrantRecord): DatasourceGrant {
  return { subject, createdBy: grantedBy, createdAt };
}
