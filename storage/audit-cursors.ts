import { defineRecord } from './codec.ts';

/** The last entry of a workspace's audit that the receiver has. Key: workspace id. */
export const auditCursors = defineRecord<string>('audit-cursor', 1);
