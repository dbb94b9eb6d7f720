/** The right to read a datasource. Reading is the only right: it includes testing, replacing and deleting it. */
import type { Principal } from '#src/base/caller/principal.ts';
import { type DatasourceRecord, datasourceGrants } from '#storage/records/datasources.ts';
import type { Store } from '#storage/store.ts';

/** The subjects that a grant can name: one user, or every member with a role. */
export type Subject = `user:${string}` | `role:${'editor' | 'viewer'}`;

/**
 * Returns whether the caller may read the datasource: as an owner of the workspace, as its creator, or through a grant.
 * A grant to viewers includes editors.
 */
export function mayRead(
  store: Store,
  principal: Pick<Principal, 'workspaceId' | 'userId' | 'role'>,
  { slug, createdBy }: DatasourceRecord,
): boolean {
  const { workspaceId, userId, role } = principal;
  if (role === 'owner' || createdBy === userId) return true;
  const subjects: Subject[] = [`user:${userId}`, 'role:viewer'];
  if (role === 'editor') subjects.push('role:editor');
  return subjects.some((subject) => store.get(datasourceGrants, workspaceId, slug, subject) !== undefined);
}
