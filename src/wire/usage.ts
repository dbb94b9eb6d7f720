/** How much a workspace takes on the disk of the server. */
import Type from 'typebox';
import { closed, nullable, Timestamp, type Wire } from './shape.ts';

const bytes = (description: string) => Type.Integer({ description: `Bytes of ${description}.` });

const FileUsageSchema = Type.Object(
  {
    bytes: Type.Integer({
      description: 'The space that the file system has allocated for the files, as `du` counts it.',
    }),
    entries: Type.Integer({ description: 'Files, folders, links.' }),
    complete: Type.Boolean({
      description:
        'False when something was not counted: folders that are more than 64 deep or cannot be read, or entries beyond the ' +
        'first million. With a quota such a workspace counts as full.',
    }),
    countedAt: Timestamp,
    maxBytes: nullable(Type.Integer({ description: 'The quota of `bytes`; null when there is none.' })),
    maxEntries: nullable(Type.Integer({ description: 'The quota of `entries`; null when there is none.' })),
  },
  { $id: 'FileUsage', ...closed },
);

const StoredUsageSchema = Type.Object(
  {
    bytes: bytes('all records of the workspace, without their keys and the overhead of the store'),
    records: Type.Integer({ description: 'How many there are.' }),
    notebooks: bytes('notebooks and the last outputs of their cells'),
    runs: bytes('runs, with the outputs that are not assets'),
    assets: bytes('large outputs and figures of runs'),
    conversations: bytes('conversations with agents'),
    audit: bytes('the audit'),
    other: bytes('everything else: sessions, recorded answers, datasources, members'),
    complete: Type.Boolean({
      description:
        'False during the first count after the start of the server if it takes longer than a second; the ' +
        'figures then cover the records counted so far.',
    }),
    countedAt: Timestamp,
  },
  { $id: 'StoredUsage', ...closed },
);
export type StoredUsage = Wire<typeof StoredUsageSchema>;

export const WorkspaceUsageSchema = Type.Object(
  { files: FileUsageSchema, stored: StoredUsageSchema },
  { $id: 'WorkspaceUsage', ...closed },
);
export type WorkspaceUsage = Wire<typeof WorkspaceUsageSchema>;
