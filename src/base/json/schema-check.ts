/** Checks values against schemas, and describes the mistakes in them. */
import type { Static, TSchema } from 'typebox';
import { Compile, type Validator } from 'typebox/compile';
import type { Violation } from '../errors/errors.ts';

export type SchemaError = ReturnType<Validator['Errors']>[number];

/**
 * The compiled schemas of this process. Its warm-up opens a second app with the same schemas: the checks that it makes fast are those of the
 * first app, and nothing is compiled twice.
 */
const validators = new WeakMap<TSchema, Validator>();

function compiled(schema: TSchema): Validator {
  let validator = validators.get(schema);
  if (validator === undefined) {
    validator = Compile(schema);
    validators.set(schema, validator);
  }
  return validator;
}

/** A schema that is compiled on first use: compiling takes milliseconds, and a process uses few of its schemas. */
export class SchemaCheck<Schema extends TSchema> {
  readonly schema: Schema;
  #validator: Validator | undefined;

  constructor(schema: Schema) {
    this.schema = schema;
  }

  /** Returns whether the value matches the schema. */
  matches(value: unknown): value is Static<Schema> {
    this.#validator ??= compiled(this.schema);
    return this.#validator.Check(value);
  }

  /** Returns the mistakes of a value that does not match. This costs about a hundred times as much as `matches`. */
  errorsOf(value: unknown): readonly SchemaError[] {
    this.#validator ??= compiled(this.schema);
    return this.#validator.Errors(value);
  }
}

/**
 * Returns the violations for one mistake, without quoting the value. `path` is the place of the
 * mistake; the names of missing and unknown members are appended to `parent`.
 */
export function describeSchemaError(error: SchemaError, path: string, parent = `${path}/`): Violation[] {
  const member = (name: string, message: string) => ({ path: parent + escapePointer(name), message });
  switch (error.keyword) {
    case 'additionalProperties':
      return error.params.additionalProperties.map((name) => member(name, 'is not expected here'));
    case 'required':
      return error.params.requiredProperties.map((name) => member(name, 'is required'));
    case 'enum':
      return [{ path, message: `must be one of ${error.params.allowedValues.map(quoted).join(', ')}` }];
    case 'format':
      if (error.params.format !== 'date-time') return [{ path, message: error.message }];
      return [{ path, message: 'must be a time such as 2026-01-31T12:00:00Z' }];
    case 'minLength':
      if (error.params.limit !== 1) return [{ path, message: error.message }];
      return [{ path, message: 'must not be empty' }];
    case 'not':
      return [{ path, message: 'is a reserved name' }];
    case 'boolean': // The validator reports a forbidden member twice: here and as an additional property.
      return [];
    default:
      return [{ path, message: error.message }];
  }
}

function quoted(value: unknown): string {
  return JSON.stringify(value);
}

/** Returns the name of a member as it stands in a JSON pointer. */
export function escapePointer(name: string): string {
  return name.replaceAll('~', '~0').replaceAll('/', '~1');
}
