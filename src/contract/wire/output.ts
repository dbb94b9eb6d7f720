/** Outputs: their shape in runs and events, and the members that every output has in addition to its value. */
import Type from 'typebox';
import { closed, oneOf, type Wire } from './shape.ts';

const OutputTableSchema = Type.Object(
  {
    columns: Type.Array(
      Type.Object(
        {
          name: Type.String(),
          type: Type.String({ description: "The library's own name, such as `int64`." }),
        },
        { $id: 'OutputTableColumn', ...closed },
      ),
    ),
    rows: Type.Array(Type.Array(Type.Unknown()), {
      description:
        'The first rows, at most 100. Integers beyond 2^53, decimals, dates and times are text; missing values are null.',
    }),
    rowCount: Type.Integer({ description: 'The number of rows of the whole table.' }),
    columnCount: Type.Integer({
      description:
        'The number of columns in the whole table; `columns` lists at most 100 of them, and the index.',
    }),
  },
  { $id: 'OutputTable', ...closed },
);
export type OutputTable = Wire<typeof OutputTableSchema>;

/** The members that an output has in addition to its value in marimo's own type. */
export const descriptionOfOutput = {
  text: Type.Optional(
    Type.String({
      description:
        'The output as text (`text/plain`), such as the `repr` of the value. Of a long text, only the beginning.',
    }),
  ),
  table: Type.Optional(OutputTableSchema),
} as const;

/** An output of a cell, or an entry of its console, in a run and in an event. */
export const OutputSchema = Type.Object(
  {
    channel: Type.Optional(
      Type.Unsafe<string>({
        ...oneOf(['stdout', 'stderr', 'stdin', 'pdb', 'output', 'media', 'marimo-error']),
        description:
          'The channel to which the kernel wrote the output. Only console entries have a channel: printed text, or a figure.',
      }),
    ),
    mimetype: Type.String(),
    data: Type.Optional(
      Type.Unknown({
        description:
          'The value: text, or JSON when the media type says so. Absent when there is an `assetId`.',
      }),
    ),
    assetId: Type.Optional(
      Type.String({
        description:
          'The asset with a value that is too large for `data`. In a run the asset is read with `GET ' +
          '/api/v3/runs/{runId}/assets/{assetId}`, in an event with `GET ' +
          '/api/v3/notebook-sessions/{sessionId}/assets/{assetId}`.',
      }),
    ),
    ...descriptionOfOutput,
  },
  { $id: 'Output', ...closed },
);
export type Output = Wire<typeof OutputSchema>;
