/** Checks the members of connections, and finds the secret ones. */
import type { TObject } from 'typebox';
import type { Validator } from 'typebox/compile';
import type { Violation } from '#src/core/errors.ts';

type SchemaError = ReturnType<Validator['Errors']>[number];

/** Returns one violation for each mistaken member. None repeats a value, which may be a secret. */
export function memberViolations(errors: readonly SchemaError[], path: string): Violation[] {
  const found = new Map<string, Violation>();
  const alternatives = errors.filter(isAlternative);
  const rest = errors.filter((error) => !isAlternative(error) && error.keyword !== 'anyOf');
  for (const violation of [...rest.flatMap((error) => describe(error, path)), ...anyOf(alternatives, path)]) {
    if (!found.has(violation.path)) found.set(violation.path, violation);
  }
  return [...found.values()];
}

/** Returns whether the error is about a group of members of which one is required and all are missing. */
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
  const member = (name: string, message: string) => ({ path: `${at}/${escapePointer(name)}`, message });
  switch (error.keyword) {
    case 'additionalProperties':
      return error.params.additionalProperties.map((name) => member(name, 'is not a known member'));
    case 'required':
      return error.params.requiredProperties.map((name) => member(name, 'is required'));
    case 'boolean': // the same mistake is also reported as an additional property
      return [];
    case 'pattern':
      return [{ path: at, message: 'does not have the required format' }];
    default:
      return [{ path: at, message: error.message }];
  }
}

function escapePointer(name: string): string {
  return name.replaceAll('~', '~0').replaceAll('/', '~1');
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
