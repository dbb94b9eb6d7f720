/** Saved notebooks. */
import Type from 'typebox';
import { closed, nullable, oneOf, Timestamp, type Wire } from './shape.ts';

const OptionsSchema = Type.Record(Type.String(), Type.Unknown());

/** `__scratch__` is the kernel's name for code that belongs to no cell. */
export const CellIdSchema = Type.String({
  minLength: 1,
  maxLength: 128,
  pattern: '^(?!__scratch__$)[^\\u0000-\\u001f\\u007f]+$',
  description: 'Unique within the notebook; without control characters.',
});

const SerializationInputSchema = Type.Object(
  {
    version: Type.Optional(Type.String({ maxLength: 64, default: '1' })),
    app: Type.Optional(Type.Object({ options: Type.Optional(OptionsSchema) }, closed)),
    cells: Type.Optional(
      Type.Array(
        Type.Object(
          {
            cell_id: CellIdSchema,
            code: Type.String({ description: 'Python.' }),
            options: Type.Optional(OptionsSchema),
          },
          closed,
        ),
        { maxItems: 10_000 },
      ),
    ),
    valid: Type.Optional(Type.Boolean({ description: 'Ignored: the server computes it.' })),
    ui_values: Type.Optional(Type.Record(Type.String(), Type.Unknown())),
  },
  closed,
);

export const DatasourceSlugsSchema = Type.Array(
  Type.String({ maxLength: 120, pattern: '^[A-Za-z0-9][A-Za-z0-9._-]*$' }),
  {
    maxItems: 1_000,
    uniqueItems: true,
    description: 'Slugs of datasources. Whether they exist is checked when they are used.',
  },
);

const fields = {
  serialization: Type.Optional(SerializationInputSchema),
  datasourceSlugs: Type.Optional(DatasourceSlugsSchema),
  variables: Type.Optional(
    Type.Record(
      Type.String({ pattern: '^[A-Za-z_][A-Za-z0-9_]*$' }),
      Type.String({ maxLength: 65_536, pattern: '^[^\\u0000]*$' }),
      { description: "Environment variables of the notebook's kernel.", additionalProperties: false },
    ),
  ),
};

export const NotebookFieldsSchema = Type.Object(fields, closed);
export type NotebookFields = Wire<typeof NotebookFieldsSchema>;

export const NotebookChangeSchema = Type.Object(
  { expectedUpdatedAt: Type.String({ minLength: 1, maxLength: 64 }), ...fields },
  closed,
);
export type NotebookChange = Wire<typeof NotebookChangeSchema>;

export const NotebookSchema = Type.Object(
  {
    id: Type.String(),
    createdAt: Timestamp,
    updatedAt: Type.String({
      format: 'date-time',
      description: 'Strictly increasing. Pass it as `expectedUpdatedAt` to change the notebook.',
    }),
    serialization: Type.Object(
      {
        version: Type.String(),
        app: Type.Object({ options: OptionsSchema }, closed),
        cells: Type.Array(
          Type.Object({ cell_id: Type.String(), code: Type.String(), options: OptionsSchema }, closed),
        ),
        valid: Type.Boolean({ description: 'False when a cell is not valid Python.' }),
        ui_values: Type.Record(Type.String(), Type.Unknown()),
      },
      closed,
    ),
    datasourceSlugs: Type.Array(Type.String()),
    variables: Type.Record(Type.String(), Type.String()),
  },
  { $id: 'Notebook', ...closed },
);
export type Notebook = Wire<typeof NotebookSchema>;
export type Cell = Notebook['serialization']['cells'][number];

export const NotebookSummarySchema = Type.Object(
  {
    id: Type.String(),
    title: nullable(Type.String()),
    cellCount: Type.Integer(),
    datasourceSlugs: Type.Array(Type.String()),
    createdAt: Timestamp,
    updatedAt: Timestamp,
  },
  { $id: 'NotebookSummary', ...closed },
);
export type NotebookSummary = Wire<typeof NotebookSummarySchema>;

const FileFormatSchema = oneOf(['py', 'ipynb', 'md']);
export type NotebookFileFormat = Wire<typeof FileFormatSchema>;

export const NotebookImportSchema = Type.Object(
  { format: FileFormatSchema, content: Type.String({ description: 'The whole file.' }) },
  closed,
);

export const NotebookExportQuery = Type.Object(
  {
    format: oneOf(['py', 'ipynb', 'md', 'html']),
    frontEnd: Type.Optional(
      Type.Union([Type.Literal('server'), Type.Literal('cdn')], {
        default: 'server',
        description: 'Where an `html` page loads its front end from: this server, or a public CDN.',
      }),
    ),
  },
  closed,
);
