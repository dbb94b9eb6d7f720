import type { TSchema } from 'typebox';
import { Compile, type Validator } from 'typebox/compile';
import { Settings } from 'typebox/system';
import { AppError, type Violation } from '#src/core/errors.ts';

type SchemaError = ReturnType<Validator['Errors']>[number];

/**
 * Of what the validator finds. A union reports the mistakes of all its branches and comes behind them: cut off before it,
 * nothing would tell which branch was meant.
 */
const MAX_FOUND = 500;
const MAX_SHOWN = 20;
Settings.Set({ maxErrors: MAX_FOUND });

/** Throws `invalid_request` with one violation per mistake when the value does not match. Never repeats a value. */
export type Check = (value: unknown) => void;

/**
 * A check against `schema`, compiled on its first use. `prefix` is put before the JSON pointers, as in `query/limit`.
 */
export function createCheck(schema: TSchema, prefix = ''): Check {
  let validator: Validator | undefined;
  return (value) => {
    validator ??= Compile(schema);
    if (validator.Check(value)) return;
    throw invalidRequest(
      isSmall(value) ? violationsOf(validator.Errors(value), schema, prefix) : [SOMEWHERE],
    );
  };
}

/** To say what is wrong everything is looked at, at a hundred times the cost of the check. */
const MAX_EXPLAINED_VALUES = 50_000;
const SOMEWHERE: Violation = {
  path: '',
  message: 'does not match the schema, and is too large to say where',
};

function isSmall(value: unknown): boolean {
  const toVisit = [value];
  for (let visited = 0; visited < toVisit.length; visited++) {
    const next = toVisit[visited];
    if (typeof next === 'object' && next !== null)
      for (const member of Object.values(next)) toVisit.push(member);
    if (toVisit.length > MAX_EXPLAINED_VALUES) return false;
  }
  return true;
}

export function invalidRequest(errors: readonly Violation[]): AppError {
  const [first] = errors;
  const detail =
    first === undefined
      ? 'The request does not match the schema.'
      : `${first.path || 'The body'} ${first.message}.`;
  return new AppError('invalid_request', detail, { errors });
}

function violationsOf(errors: readonly SchemaError[], schema: TSchema, prefix: string): Violation[] {
  const found = new Map<string, Violation>();
  for (const error of withoutLosingBranches(errors)) {
    for (const violation of describe(error, schema, prefix)) {
      if (!found.has(violation.path)) found.set(violation.path, violation);
    }
  }
  return [...found.values()].slice(0, MAX_SHOWN);
}

function describe(error: SchemaError, schema: TSchema, prefix: string): Violation[] {
  const path = prefix === '' ? error.instancePath : prefix + error.instancePath.slice(1);
  const separator = prefix !== '' && error.instancePath === '' ? '' : '/';
  if (error.keyword === 'additionalProperties') {
    const pattern = namePattern(schema, error.schemaPath);
    const message =
      pattern === undefined ? 'is not a known member' : `is not an allowed name: it must match ${pattern}`;
    return error.params.additionalProperties.map((name) => member(path + separator, name, message));
  }
  if (error.keyword === 'required') {
    return error.params.requiredProperties.map((name) => member(path + separator, name, 'is required'));
  }
  if (error.keyword === 'minProperties') {
    const names = Object.keys(schemaAt(schema, error.schemaPath)?.properties ?? {});
    return [{ path, message: `must have at least one of ${names.join(', ')}` }];
  }
  // A member that no schema allows is reported twice by the validator: here, and as an additional property.
  if (error.keyword === 'boolean') return [];
  return [{ path, message: error.message }];
}

/** What names of members must match where the caller chooses them. */
function namePattern(schema: TSchema, schemaPath: string): string | undefined {
  const patterns = schemaAt(schema, schemaPath)?.patternProperties;
  return patterns === undefined ? undefined : Object.keys(patterns).join(' or ');
}

interface ObjectSchema {
  readonly properties?: object;
  readonly patternProperties?: object;
}

function schemaAt(schema: TSchema, schemaPath: string): ObjectSchema | undefined {
  let place: unknown = schema;
  for (const step of schemaPath.split('/').slice(1)) {
    place = (place as Readonly<Record<string, unknown>> | undefined)?.[step];
  }
  return place as ObjectSchema | undefined;
}

function member(parent: string, name: string, message: string): Violation {
  return { path: parent + name.replaceAll('~', '~0').replaceAll('/', '~1'), message };
}

/**
 * A failed union reports the mistakes of all its branches. Where a branch was ruled out by its tag (a `const`) or by
 * its type, what it says helps nobody; what is left is the branch the caller meant. Where none is left, the union says
 * what it takes.
 */
function withoutLosingBranches(errors: readonly SchemaError[]): readonly SchemaError[] {
  const losing = new Map<string, Branch>();
  for (const union of errors.filter(isUnion)) {
    for (const error of errorsWithin(union, errors)) {
      const branch = branchOf(union, error);
      const isTag =
        (error.keyword === 'const' || error.keyword === 'enum') &&
        /^(\/properties\/[^/]+)?$/.test(error.schemaPath.slice(branch.length));
      if (isTag || (error.keyword === 'type' && error.instancePath === union.instancePath))
        losing.set(`${union.instancePath} ${branch}`, { place: union.instancePath, schemaPath: branch });
    }
  }
  if (losing.size === 0) return errors.filter((error) => !isUnion(error));
  const lost = [...losing.values()];
  const kept = errors.filter((error) => !lost.some((branch) => isOf(branch, error)));
  return kept.flatMap((error) => {
    if (!isUnion(error)) return [error];
    return errorsWithin(error, kept).length > 0 ? [] : choicesOf(error, errorsWithin(error, errors));
  });
}

/** What a union takes, said once: its tags at their place, or its types. */
function choicesOf(union: SchemaError, within: readonly SchemaError[]): SchemaError[] {
  const tags = within.filter((error) => error.keyword === 'const');
  const place = tags[0]?.instancePath ?? union.instancePath;
  const values = tags.flatMap(({ params, instancePath }) =>
    instancePath === place && 'allowedValue' in params ? [JSON.stringify(params.allowedValue)] : [],
  );
  const tagged = new Set(tags.map(({ schemaPath }) => schemaPath));
  const types = within.filter(
    (error) => error.keyword === 'type' && error.instancePath === place && !tagged.has(error.schemaPath),
  );
  const messages = [
    ...(values.length > 0 ? [`must be one of ${[...new Set(values)].join(', ')}`] : []),
    ...types.map(({ message }) => message),
  ];
  if (messages.length === 0) return [union];
  return [{ ...union, instancePath: place, message: [...new Set(messages)].join(' or ') }];
}

/** A branch of a union, at one of the places where the value has such a union: elements of a list share their schema. */
interface Branch {
  readonly place: string;
  readonly schemaPath: string;
}

function isOf({ place, schemaPath }: Branch, error: SchemaError): boolean {
  return isAtOrBelow(place, error.instancePath) && isAtOrBelow(schemaPath, error.schemaPath);
}

function isAtOrBelow(path: string, other: string): boolean {
  return other === path || other.startsWith(`${path}/`);
}

function isUnion({ keyword }: SchemaError): boolean {
  return keyword === 'anyOf' || keyword === 'oneOf';
}

function errorsWithin(union: SchemaError, errors: readonly SchemaError[]): SchemaError[] {
  const branches = { place: union.instancePath, schemaPath: `${union.schemaPath}/${union.keyword}` };
  return errors.filter((error) => isOf(branches, error));
}

function branchOf(union: SchemaError, { schemaPath }: SchemaError): string {
  const start = `${union.schemaPath}/${union.keyword}/`;
  return start + schemaPath.slice(start.length).split('/', 1)[0];
}
