/** Changes of the cells of an open notebook. */
import Type from 'typebox';
import { CellIdSchema } from './notebook.ts';
import { CELL_NAME } from './patterns.ts';
import { CellVersion } from './session.ts';
import { closed, nullable, optionalOrNull, Timestamp, taggedUnion, type Wire } from './shape.ts';

const settings = {
  disabled: Type.Optional(Type.Boolean()),
  hideCode: Type.Optional(Type.Boolean()),
  column: Type.Optional(nullable(Type.Integer({ minimum: 0, maximum: 10_000 }))),
  expandOutput: Type.Optional(Type.Boolean()),
};

const CellSettingsChangeSchema = Type.Object(settings, {
  $id: 'CellSettingsChange',
  ...closed,
  description: 'Omitted settings are not changed.',
});

const NameSchema = Type.String({
  maxLength: 128,
  pattern: CELL_NAME,
  description: 'The name of the cell; empty for none. No other cell of the notebook may have the same name.',
});

const CodeSchema = Type.String({ description: 'Python.' });

const PLACE = {
  before: optionalOrNull(Type.String({ description: 'The cell before which this cell is put.' })),
  after: optionalOrNull(Type.String({ description: 'The cell after which this cell is put.' })),
};

const READ_CELL = {
  cellId: CellIdSchema,
  version: optionalOrNull(CellVersion),
};

/** The most changes in one request. */
const MAX_CHANGES = 10_000;

const CellChangeSchema = taggedUnion(
  'type',
  [
    Type.Object(
      {
        type: Type.Literal('create-cell'),
        cellId: optionalOrNull(CellIdSchema),
        code: CodeSchema,
        name: optionalOrNull(NameSchema),
        config: optionalOrNull(CellSettingsChangeSchema),
        ...PLACE,
      },
      {
        $id: 'CreateCell',
        ...closed,
        description:
          'Adds a cell: at the end, or at the place that `before` or `after` names. Without `cellId` the server chooses an id.',
      },
    ),
    Type.Object(
      { type: Type.Literal('delete-cell'), ...READ_CELL },
      { $id: 'DeleteCell', ...closed, description: 'Deletes a cell, and its variables from the kernel.' },
    ),
    Type.Object(
      { type: Type.Literal('move-cell'), ...READ_CELL, ...PLACE },
      { $id: 'MoveCell', ...closed, description: 'Puts a cell before or after another one.' },
    ),
    Type.Object(
      { type: Type.Literal('set-code'), ...READ_CELL, code: CodeSchema },
      { $id: 'SetCellCode', ...closed, description: 'Replaces the code of a cell. Nothing runs.' },
    ),
    Type.Object(
      { type: Type.Literal('set-name'), ...READ_CELL, name: NameSchema },
      { $id: 'SetCellName', ...closed, description: 'Gives a cell another name.' },
    ),
    Type.Object(
      { type: Type.Literal('set-config'), ...READ_CELL, config: CellSettingsChangeSchema },
      { $id: 'SetCellConfig', ...closed, description: 'Changes the settings of a cell.' },
    ),
  ],
  { $id: 'CellChange' },
);
export type CellChange = Wire<typeof CellChangeSchema>;

export const ChangeCellsSchema = Type.Object(
  {
    changes: Type.Array(CellChangeSchema, {
      minItems: 1,
      maxItems: MAX_CHANGES,
      description: 'The changes are made in this order: all of them, or none.',
    }),
    expectedUpdatedAt: Type.Optional(
      Type.String({
        format: 'date-time',
        maxLength: 64,
        description:
          'The `updatedAt` of the notebook as you know it. The request is refused if anything in the notebook has changed since. ' +
          'Without this member, only the `version` of each change is compared.',
      }),
    ),
  },
  {
    $id: 'ChangeCells',
    ...closed,
    examples: [
      {
        changes: [
          { type: 'set-code', cellId: 'total', code: 'total = sum(numbers)' },
          { type: 'create-cell', cellId: 'mean', code: 'mean = total / len(numbers)', after: 'total' },
        ],
      },
    ],
  },
);
export type ChangeCells = Wire<typeof ChangeCellsSchema>;

export const ChangedCellsSchema = Type.Object(
  {
    sessionId: Type.String(),
    updatedAt: Timestamp,
    cells: Type.Array(
      Type.Object(
        {
          cellId: Type.String(),
          version: nullable(CellVersion),
        },
        { $id: 'ChangedCell', ...closed },
      ),
      {
        description:
          'For each change, in the order of the request, the cell that the change made or changed. `version` is ' +
          'the version of the cell after the whole request; null when the cell was deleted.',
      },
    ),
  },
  { $id: 'ChangedCells', ...closed },
);
export type ChangedCells = Wire<typeof ChangedCellsSchema>;
