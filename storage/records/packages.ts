import { defineRecord } from '../codec.ts';

/** The packages that all notebooks of a workspace have, by their normal names. Key: workspace id. */
export interface WorkspacePackagesRecord {
  readonly byName: Readonly<
    Record<string, { readonly requirement: string; readonly addedBy: string; readonly addedAt: string }>
  >;
}
export const workspacePackageRecords = defineRecord<WorkspacePackagesRecord>('workspace-packages', 1);
