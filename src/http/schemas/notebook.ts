import Type from 'typebox';
import { nullable, Timestamp } from './paging.ts';

const Options = Type.Record(Type.String(), Type.Unknown());

/** `__scratch__` is the kernel's name for code that is in no cell. */
export const CellIdSchema = Type.String({
  minLength: 1,
  maxLength: 128,
  pattern: '^(?!__scratch__$)[^\\u0000-\\u001f\\u007f]+$',
  description: 'Unique within the notebook; without control characters.',
});

const CellInput = Type.Object(
  {
    cell_id: CellIdSchema,
    code: Type.String({ description: 'Python.' }),
    options: Type.Optional(Options),
  },
  { additionalProperties: false },
);

export const SerializationInputSchema = Type.Object(
  {
    version: Type.Optional(Type.String({ maxLength: 64, default: '1' })),
    app: Type.Optional(Type.Object({ options: Type.Optional(Options) }, { additionalProperties: false })),
    cells: Type.Optional(Type.Array(CellInput, { maxItems: 10_000 })),
    valid: Type.Optional(Type.Boolean({ description: 'Ignored: the service computes it.' })),
    ui_values: Type.Optional(Type.Record(Type.String(), Type.Unknown())),
  },
  { additionalProperties: false },
);

export const DatasourceSlugs = Type.Array(
  Type.String({ maxLength: 120, pattern: '^[A-Za-z0-9][A-Za-z0-9._-]*$' }),
  { maxItems: 1_000, uniqueItems: true, description: 'Slugs of datasources; looked up when they are used.' },
);

export const Variables = Type.Record(
  Type.String({ pattern: '^[A-Za-z_][A-Za-z0-9_]*$' }),
  Type.String({ maxLength: 65_536, pattern: '^[^\\u0000]*$' }),
  { description: "Environment variables of the notebook's kernel.", additionalProperties: false },
);

export const NotebookSchema = Type.Object(
  {
    id: Type.String(),
    createdAt: Timestamp,
    updatedAt: Type.String({
      format: 'date-time',
      description: 'Strictly increasing; pass it as `expectedUpdatedAt` to change the notebook.',
    }),
    serialization: Type.Object(
      {
        version: Type.String(),
        app: Type.Object({ options: Options }, { additionalProperties: false }),
        cells: Type.Array(
          Type.Object(
            { cell_id: Type.String(), code: Type.String(), options: Options },
            { additionalProperties: false },
          ),
        ),
        valid: Type.Boolean({ description: 'False when a cell does not parse.' }),
        ui_values: Type.Record(Type.String(), Type.Unknown()),
      },
      { additionalProperties: false },
    ),
    datasourceSlugs: Type.Array(Type.String()),
    variables: Type.Record(Type.String(), Type.String()),
  },
  { $id: 'Notebook', additionalProperties: false },
);

export const NotebookSummarySchema = Type.Object(
  {
    id: Type.String(),
    title: nullable(Type.String()),
    cellCount: Type.Integer(),
    datasourceSlugs: Type.Array(Type.String()),
    createdAt: Timestamp,
    updatedAt: Timestamp,
  },
  { $id: 'NotebookSummary', additionalProperties: false },
);
