import type { WorkspaceId } from '#src/base/ids.ts';
import { defineRecord } from '../codec.ts';

/** The limits that the operator has set for one workspace; an absent limit has the value of the settings. 0 means no limit. */
export interface WorkspaceLimitsRecord {
  readonly values: Readonly<Partial<Record<LimitName, number>>>;
  readonly updatedAt: string;
  readonly updatedBy: string;
}

/** Key: workspace id. */
export const workspaceLimitRecords = defineRecord<WorkspaceLimitsRecord>('workspace-limits', 1);

/** Every limit of a workspace, by name; the last two are of each of its members. */
export const LIMIT_NAMES = [
  'sessions',
  'runs',
  'streams',
  'filesMb',
  'files',
  'jobs',
  'sessionsPerUser',
  'runsPerUser',
] as const;
export type LimitName = (typeof LIMIT_NAMES)[number];

/** All limits of a workspace; 0 means no limit. */
export type Limits = Readonly<Record<LimitName, number>>;

export const NO_LIMITS: Limits = {
  sessions: 0,
  runs: 0,
  streams: 0,
  filesMb: 0,
  files: 0,
  jobs: 0,
  sessionsPerUser: 0,
  runsPerUser: 0,
};

/** Returns a limit of a workspace as it is now; 0 means no limit. */
export type LimitOf = (workspaceId: WorkspaceId) => number;
