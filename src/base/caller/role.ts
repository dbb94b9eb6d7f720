/** The roles of a workspace's members. A viewer reads, an editor also writes, an owner also administers. */
export const ROLES = ['owner', 'editor', 'viewer'] as const;
export type Role = (typeof ROLES)[number];
