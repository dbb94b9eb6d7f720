/** How much a workspace takes on the disk of the server, and the tokens that its members have spent with models. */
import Type from 'typebox';
import { closed, nullable, PageQuery, Timestamp, type Wire } from './shape.ts';

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
        'first million. With a quota, a workspace that was not counted completely is full.',
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
    records: Type.Integer({ description: 'The number of records.' }),
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

const day = (description: string) =>
  Type.Optional(Type.String({ pattern: '^[0-9]{4}-[0-9]{2}-[0-9]{2}$', maxLength: 10, description }));

export const UsageQuery = Type.Object(
  {
    ...PageQuery.properties,
    // A cursor has the name of a model, which may have 256 characters, and the id of a user.
    after: Type.Optional(Type.String({ ...PageQuery.properties.after, maxLength: 500 })),
    from: day('The first UTC day of `models`, such as 2026-06-01. Omitted: 30 days before the last day.'),
    to: day('The last UTC day of `models`, at most 365 days after the first one. Omitted: today.'),
  },
  closed,
);

const ModelUsageSchema = Type.Object(
  {
    day: Type.String({ description: 'The UTC day on which the calls ended.' }),
    userId: Type.String({
      description: 'The user who sent the prompts. The user may have left the workspace.',
    }),
    model: Type.String({ description: 'The model, with its provider.' }),
    inputTokens: Type.Integer({
      description: 'All input tokens, including `cacheReadTokens` and `cacheWriteTokens`.',
    }),
    outputTokens: Type.Integer(),
    cacheReadTokens: Type.Integer({ description: "Input tokens that were read from the provider's cache." }),
    cacheWriteTokens: Type.Integer({
      description: "Input tokens that were written to the provider's cache.",
    }),
    calls: Type.Integer({
      description: 'Answers of the model, including answers that broke off after their beginning.',
    }),
    estimatedCalls: Type.Integer({
      description:
        'How many of the calls have estimated figures: one token for every four bytes. The provider reported none, or the answer broke off first.',
    }),
  },
  { $id: 'ModelUsage', ...closed },
);
export type ModelUsage = Wire<typeof ModelUsageSchema>;

const ModelUsagePageSchema = Type.Object(
  {
    from: Type.String({ description: 'The first day.' }),
    to: Type.String({ description: 'The last day.' }),
    items: Type.Array(ModelUsageSchema, {
      description:
        'One sum for each day, user and model, the oldest day first. Callers who do not own the workspace see only their own tokens.',
    }),
    nextCursor: nullable(
      Type.String({ description: 'The `after` of the next page; null when there are no more sums.' }),
    ),
  },
  { $id: 'ModelUsagePage', ...closed },
);
export type ModelUsagePage = Wire<typeof ModelUsagePageSchema>;

export const WorkspaceUsageSchema = Type.Object(
  { files: FileUsageSchema, stored: StoredUsageSchema, models: ModelUsagePageSchema },
  { $id: 'WorkspaceUsage', ...closed },
);
export type WorkspaceUsage = Wire<typeof WorkspaceUsageSchema>;
