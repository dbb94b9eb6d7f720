/** Checks the members of connections, and finds the secret ones. */
import type { TObject } from 'typebox';
import type { Violation } from '#src/base/errors/errors.ts';
import { describeSchemaError, type SchemaError } from '#src/base/json/schema-check.ts';

/**
 * Returns one violation for each mistaken member. The violations never repeat a value, which may be
 * a secret.
 */
export function memberViolations(errors: readonly SchemaError[], path: string): Violation[] {
  const found = new Map<string, Violation>();
  const alternatives = errors.filter(isAlternative);
  const rest = errors.filter((error) => !isAlternative(error) && error.keyword !== 'anyOf');
  for (const violation of [...rest.flatMap((error) => describe(error, path)), ...anyOf(alternatives, path)]) {
    if (!found.has(violation.path)) found.set(violation.path, violation);
  }
  return [...found.values()];
}

/** Returns whether the error says that one member of a group is required and all are missing. */
function isAlternative({ keyword, schemaPath }: SchemaError): boolean {
  return keyword === 'required' && schemaPath.startsWith('#/anyOf/');
}

function anyOf(alternatives: readonly SchemaError[], path: string): Violation[] {
  const violations = alternatives.flatMap((error) => describe(error, path));
  const [first, ...others] = violations.map((violation) => violation.path);
  if (first === undefined) return [];
  const names = others.map((one) => one.slice(path.length + 1));
  return [{ path: first, message: `is required, or ${names.join(', or ')}` }];
}

function describe(error: SchemaError, path: string): Violation[] {
  const at = path + error.instancePath;
  if (error.keyword === 'pattern') return [{ path: at, message: 'does not have the required format' }];
  return describeSchemaError(error, at);
}

/** Returns the values of all members whose schema is `writeOnly`. */
export function secretMembers(schema: TObject, connection: object): string[] {
  const values = new Map<string, unknown>(Object.entries(connection));
  return Object.entries(schema.properties).flatMap(([name, member]) => {
    const isSecret = 'writeOnly' in member && member.writeOnly === true;
    return isSecret ? textsIn(values.get(name)) : [];
  });
}

function textsIn(value: unknown): string[] {
  if (typeof value === 'string') return [value];
  return typeof value === 'object' && value !== null ? Object.values(value).flatMap(textsIn) : [];
}
