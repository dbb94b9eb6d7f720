/** The use of an open notebook without changing its cells: values of UI elements, calls of their functions, completions. */
import Type from 'typebox';
import { CellIdSchema } from './notebook.ts';
import { CellResultSchema } from './run.ts';
import { FailureSchema } from './session.ts';
import { closed, mapOf, nullable, oneOf, optionalOrNull, TimeoutSchema, type Wire } from './shape.ts';

const MAX_ELEMENTS = 1000;
const MAX_ID_CHARS = 500;
const MAX_CALL_S = 3600;
/** How long a function of an element may run when the request does not say, in seconds. */
export const DEFAULT_CALL_S = 60;

export const SetUiValuesSchema = Type.Object(
  {
    values: mapOf(Type.Unknown(), {
      propertyNames: Type.String({ minLength: 1, maxLength: MAX_ID_CHARS }),
      maxProperties: MAX_ELEMENTS,
      description:
        'The new values by the ids of their elements: `object-id` in the HTML of an output, and `_id` of the element in Python. A ' +
        "value is what marimo's page would send, such as a number for a slider, or a list of the chosen keys for a dropdown.",
    }),
    timeoutS: TimeoutSchema,
  },
  { $id: 'SetUiValues', ...closed, examples: [{ values: { 'Hbol-0': 8 } }] },
);
export type SetUiValues = Wire<typeof SetUiValuesSchema>;

export const UiValuesResultSchema = Type.Object(
  {
    sessionId: Type.String(),
    status: oneOf(['completed', 'failed', 'cancelled'], {
      description:
        '`failed` when an element, a cell or the kernel failed. `cancelled` when the work was interrupted.',
    }),
    cells: Type.Array(
      Type.Object(
        { cellId: Type.String(), status: CellResultSchema.properties.status },
        { $id: 'DependentCell', ...closed },
      ),
      {
        description:
          'The cells that ran because of the new values, and how they ended. Their outputs are sent as events.',
      },
    ),
    unknown: Type.Array(Type.String(), {
      description: 'The ids for which the kernel has no element. All other values were set.',
    }),
    failures: Type.Array(
      Type.Object(
        {
          elementId: Type.String(),
          reason: Type.String(),
          isSet: Type.Boolean({
            description:
              'False when the element refused the value, true when its `on_change` handler failed.',
          }),
        },
        { $id: 'ElementFailure', ...closed },
      ),
      {
        description:
          'The elements that refused their value or whose `on_change` handler failed, each with the error of Python. The other ' +
          'values were set.',
      },
    ),
    error: nullable(FailureSchema),
  },
  { $id: 'UiValuesResult', ...closed },
);
export type UiValuesResult = Wire<typeof UiValuesResultSchema>;

export const CallFunctionSchema = Type.Object(
  {
    namespace: Type.String({
      minLength: 1,
      maxLength: MAX_ID_CHARS,
      description: 'The id of the element to which the function belongs.',
    }),
    functionName: Type.String({ minLength: 1, maxLength: MAX_ID_CHARS }),
    args: mapOf(Type.Unknown(), { description: 'The arguments by their names.' }),
    timeoutS: optionalOrNull(
      Type.Integer({
        minimum: 1,
        maximum: MAX_CALL_S,
        description: `How many seconds the function may run before it is interrupted. Default: ${DEFAULT_CALL_S}.`,
      }),
    ),
  },
  {
    $id: 'CallFunction',
    ...closed,
    examples: [
      {
        namespace: 'Hbol-0',
        functionName: 'search',
        args: { query: 'oslo', page_size: 10, page_number: 0 },
      },
    ],
  },
);
export type CallFunction = Wire<typeof CallFunctionSchema>;

export const FunctionResultSchema = Type.Object(
  {
    success: Type.Boolean({ description: 'False when the function, or the kernel, failed.' }),
    value: Type.Unknown({ description: 'The return value of the function, as JSON. Null when it failed.' }),
    error: nullable(
      Type.Object(
        {
          type: Type.String({
            description:
              '`function_not_found`, `function_failed`, `result_too_large`, or the code of a failure of the kernel, such as `timed_out`. ' +
              'Later versions may add types.',
          }),
          message: Type.String(),
        },
        { $id: 'FunctionError', ...closed },
      ),
    ),
  },
  { $id: 'FunctionResult', ...closed },
);
export type FunctionResult = Wire<typeof FunctionResultSchema>;

export const CompleteCodeSchema = Type.Object(
  {
    code: Type.String({ maxLength: 500_000, description: 'The code of the cell up to the cursor.' }),
    cellId: optionalOrNull(CellIdSchema),
  },
  { $id: 'CompleteCode', ...closed, examples: [{ code: 'import math\nmath.sq', cellId: 'Hbol' }] },
);
export type CompleteCode = Wire<typeof CompleteCodeSchema>;

export const CompletionsSchema = Type.Object(
  {
    prefixLength: Type.Integer({
      description: 'The number of characters before the cursor that an option replaces.',
    }),
    options: Type.Array(
      Type.Object(
        {
          name: Type.String(),
          type: Type.String({ description: 'Such as `function`, `module` or `instance`.' }),
          info: nullable(Type.String({ description: 'The description of the name, as HTML.' })),
        },
        { $id: 'Completion', ...closed },
      ),
    ),
    isIncomplete: Type.Boolean({
      description: 'Whether options may be missing: the kernel took too long, or there are too many options.',
    }),
  },
  { $id: 'Completions', ...closed },
);
export type Completions = Wire<typeof CompletionsSchema>;
