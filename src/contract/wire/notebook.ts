/** Saved notebooks. */
import Type from 'typebox';
import { ONE_LINE, SLUG, VARIABLE_NAME, WITHOUT_NUL } from './patterns.ts';
import {
  CreatedByIfKnown,
  closed,
  MetadataSchema,
  mapOf,
  NotebookUrlSchema,
  nullable,
  oneOf,
  ShownMetadata,
  Timestamp,
  UpdatedByIfKnown,
  type Wire,
} from './shape.ts';

const OptionsSchema = mapOf(Type.Unknown());

/** `__scratch__` is the kernel's name for code that belongs to no cell. */
export const CellIdSchema = Type.String({
  minLength: 1,
  maxLength: 128,
  pattern: ONE_LINE,
  not: { const: '__scratch__' },
  description: 'Unique within the notebook; without control characters, and not `__scratch__`.',
});

const SerializationInputSchema = Type.Object(
  {
    version: Type.Optional(Type.String({ maxLength: 64, default: '1' })),
    app: Type.Optional(
      Type.Object({ options: Type.Optional(OptionsSchema) }, { $id: 'NewNotebookApp', ...closed }),
    ),
    cells: Type.Optional(
      Type.Array(
        Type.Object(
          {
            cell_id: CellIdSchema,
            code: Type.String({ description: 'Python.' }),
            options: Type.Optional(OptionsSchema),
          },
          { $id: 'NewCell', ...closed },
        ),
        { maxItems: 10_000 },
      ),
    ),
    valid: Type.Optional(Type.Boolean({ description: 'Ignored: the server computes this member.' })),
    ui_values: Type.Optional(mapOf(Type.Unknown())),
  },
  { $id: 'NewSerialization', ...closed },
);

export const DatasourceSlugsSchema = Type.Array(Type.String({ maxLength: 120, pattern: SLUG }), {
  maxItems: 1_000,
  uniqueItems: true,
  description: 'Slugs of datasources. The server checks at their use whether they exist.',
});

/** The name of a secret environment variable. */
export const SECRET_NAME = '^[A-Za-z_][A-Za-z0-9_]{0,127}$';

/** The most characters in the value of a secret or a variable. */
export const MAX_VARIABLE_CHARS = 65_536;

const VariableValueSchema = Type.String({ maxLength: MAX_VARIABLE_CHARS, pattern: WITHOUT_NUL });

export const NotebookSecretSchema = Type.Object(
  { name: Type.String(), updatedBy: Type.String(), updatedAt: Timestamp },
  { $id: 'NotebookSecret', ...closed },
);
export type NotebookSecret = Wire<typeof NotebookSecretSchema>;

export const NotebookSecretListSchema = Type.Object(
  { items: Type.Array(NotebookSecretSchema) },
  { $id: 'NotebookSecretList', ...closed },
);

export const NewNotebookSecretSchema = Type.Object(
  {
    value: Type.String({
      minLength: 1,
      maxLength: MAX_VARIABLE_CHARS,
      pattern: WITHOUT_NUL,
      writeOnly: true,
    }),
  },
  { $id: 'NewNotebookSecret', ...closed, examples: [{ value: 'a secret' }] },
);

const fields = {
  title: Type.Optional(
    nullable(
      Type.String({
        minLength: 1,
        maxLength: 200,
        pattern: ONE_LINE,
        description:
          'The title is `app_title` in the app options of the serialization, and marimo shows it as well. Null removes the title.',
      }),
    ),
  ),
  serialization: Type.Optional(SerializationInputSchema),
  datasourceSlugs: Type.Optional(DatasourceSlugsSchema),
  variables: Type.Optional(
    mapOf(VariableValueSchema, {
      propertyNames: Type.String({ pattern: VARIABLE_NAME }),
      description:
        "Environment variables of the notebook's kernel, readable for everybody who can read the notebook. Secrets have an " +
        'operation of their own.',
    }),
  ),
  metadata: Type.Optional(MetadataSchema),
};

export const NotebookFieldsSchema = Type.Object(fields, {
  $id: 'NewNotebook',
  ...closed,
  examples: [
    {},
    {
      serialization: {
        cells: [
          { cell_id: 'numbers', code: 'numbers = [1, 2, 3]' },
          { cell_id: 'total', code: 'total = sum(numbers)', options: { hide_code: true } },
        ],
      },
      datasourceSlugs: ['sales'],
      variables: { REGION: 'eu' },
    },
  ],
});
export type NotebookFields = Wire<typeof NotebookFieldsSchema>;
export type SerializationInput = Wire<typeof SerializationInputSchema>;

export const NotebookChangeSchema = Type.Object(
  {
    expectedUpdatedAt: Type.String({
      format: 'date-time',
      maxLength: 64,
      description:
        'The `updatedAt` of your last read. Any RFC 3339 form of that time is accepted: another offset, ' +
        'or more or fewer zeros after the milliseconds.',
    }),
    ...fields,
  },
  {
    $id: 'NotebookChange',
    ...closed,
    examples: [{ expectedUpdatedAt: '2026-01-31T12:00:00.000Z', variables: { REGION: 'us' } }],
  },
);
export type NotebookChange = Wire<typeof NotebookChangeSchema>;

export const NotebookSchema = Type.Object(
  {
    id: Type.String(),
    title: nullable(Type.String()),
    createdBy: CreatedByIfKnown,
    createdAt: Timestamp,
    updatedBy: UpdatedByIfKnown,
    updatedAt: Type.String({
      format: 'date-time',
      description: 'Strictly increasing. Pass it as `expectedUpdatedAt` to change the notebook.',
    }),
    serialization: Type.Object(
      {
        version: Type.String(),
        app: Type.Object({ options: OptionsSchema }, { $id: 'NotebookApp', ...closed }),
        cells: Type.Array(
          Type.Object(
            { cell_id: Type.String(), code: Type.String(), options: OptionsSchema },
            { $id: 'Cell', ...closed },
          ),
        ),
        valid: Type.Boolean({ description: 'False when a cell is not valid Python.' }),
        ui_values: mapOf(Type.Unknown()),
      },
      { $id: 'Serialization', ...closed },
    ),
    datasourceSlugs: Type.Array(Type.String()),
    variables: mapOf(Type.String()),
    metadata: ShownMetadata,
    url: NotebookUrlSchema,
  },
  { $id: 'Notebook', ...closed },
);
export type Notebook = Wire<typeof NotebookSchema>;
export type Serialization = Notebook['serialization'];
export type Cell = Serialization['cells'][number];

const ImportWarningSchema = Type.Object(
  { code: oneOf(['packages_not_installed', 'pip_not_understood']), message: Type.String() },
  { $id: 'ImportWarning', ...closed },
);
export type ImportWarning = Wire<typeof ImportWarningSchema>;

export const ImportedNotebookSchema = Type.Object(
  {
    ...NotebookSchema.properties,
    warnings: Type.Optional(
      Type.Array(ImportWarningSchema, {
        description: 'Requests of the file that the import did not carry out. Absent when there are none.',
      }),
    ),
  },
  { $id: 'ImportedNotebook', ...closed },
);
export type ImportedNotebook = Wire<typeof ImportedNotebookSchema>;

export const NotebookSummarySchema = Type.Object(
  {
    id: Type.String(),
    title: nullable(Type.String()),
    cellCount: Type.Integer(),
    datasourceSlugs: Type.Array(Type.String()),
    metadata: ShownMetadata,
    createdBy: CreatedByIfKnown,
    createdAt: Timestamp,
    updatedBy: UpdatedByIfKnown,
    updatedAt: Timestamp,
    url: NotebookUrlSchema,
  },
  { $id: 'NotebookSummary', ...closed },
);
export type NotebookSummary = Wire<typeof NotebookSummarySchema>;

export const NotebookVersionSchema = Type.Object(
  {
    updatedAt: Type.String({
      format: 'date-time',
      description: 'The time of the last change in this version. It names the version.',
    }),
    updatedBy: UpdatedByIfKnown,
    title: nullable(Type.String()),
    cellCount: Type.Integer(),
    isCurrent: Type.Boolean({ description: 'Whether this is the present state of the notebook.' }),
  },
  { $id: 'NotebookVersion', ...closed },
);
export type NotebookVersion = Wire<typeof NotebookVersionSchema>;

export const NotebookVersionListSchema = Type.Object(
  { items: Type.Array(NotebookVersionSchema) },
  { $id: 'NotebookVersionList', ...closed },
);

export const NotebookRestorationSchema = Type.Object(
  {
    expectedUpdatedAt: Type.String({
      format: 'date-time',
      maxLength: 64,
      description: 'The `updatedAt` of your last read of the notebook.',
    }),
  },
  {
    $id: 'NotebookRestoration',
    ...closed,
    examples: [{ expectedUpdatedAt: '2026-01-31T12:00:00.000Z' }],
  },
);

const FileFormatSchema = oneOf(['py', 'ipynb', 'md']);
export type NotebookFileFormat = Wire<typeof FileFormatSchema>;

export const NotebookImportSchema = Type.Object(
  {
    format: FileFormatSchema,
    content: Type.String({ description: 'The whole file.' }),
    title: Type.Optional(
      Type.String({
        minLength: 1,
        maxLength: 200,
        pattern: ONE_LINE,
        description: 'The title of the notebook, in place of the title in the file.',
      }),
    ),
    metadata: Type.Optional(MetadataSchema),
    install: Type.Optional(
      Type.Boolean({
        default: false,
        description:
          'Whether packages that cells of a Jupyter notebook install with pip become dependencies, to be ' +
          'installed when the notebook is opened. Otherwise `warnings` name them. Only whole requirements ' +
          'count: no files, addresses or other indexes.',
      }),
    ),
    settingsFrom: Type.Optional(
      Type.String({
        minLength: 1,
        maxLength: 200,
        description:
          'The id of a notebook whose datasources, variables, metadata and secrets the new one gets. ' +
          '`metadata` overrides the metadata of that notebook. Cannot be combined with `replaces`.',
      }),
    ),
    replaces: Type.Optional(
      Type.Object(
        {
          notebookId: Type.String({ minLength: 1, maxLength: 200 }),
          expectedUpdatedAt: Type.String({
            format: 'date-time',
            maxLength: 64,
            description: 'The `updatedAt` of your last read.',
          }),
        },
        {
          ...closed,
          description:
            'The notebook whose cells the file replaces. Its datasources and variables are kept. Omitted: a new notebook.',
        },
      ),
    ),
  },
  { $id: 'NotebookImport', ...closed, examples: [{ format: 'py', content: 'print("Hello")\n' }] },
);

export type NotebookImport = Wire<typeof NotebookImportSchema>;

export const NotebookExportQuery = Type.Object(
  {
    format: oneOf(['py', 'ipynb', 'md', 'html']),
    frontEnd: Type.Optional(
      oneOf(['server', 'cdn'], {
        default: 'server',
        description: 'The place from which an `html` page loads its front end: this server, or a public CDN.',
      }),
    ),
  },
  closed,
);
