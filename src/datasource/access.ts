/** Who may read a datasource. Reading it is all there is: it also covers testing, replacing and deleting it. */
import type { Principal } from '#src/core/principal.ts';
import { type DatasourceRecord, datasourceGrants } from '#storage/datasources.ts';
import type { Store } from '#storage/store.ts';

export type Subject = `user:${string}` | `role:${'editor' | 'viewer'}`;

/** Owners of the workspace, whoever made it, and those it is shared with. A grant to viewers includes editors. */
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
