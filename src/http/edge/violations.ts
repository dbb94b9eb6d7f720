import type { TSchema } from 'typebox';
import { Settings } from 'typebox/system';
import { AppError, type Violation } from '#src/base/errors/errors.ts';
import {
  describeSchemaError,
  escapePointer,
  SchemaCheck,
  type SchemaError,
} from '#src/base/json/schema-check.ts';
import { cutText } from '#src/base/text/cut-text.ts';
import { wordsOf } from '#src/contract/wire/patterns.ts';

/**
 * How many mistakes the validator collects. For a union it reports the mistakes of all branches and
 * then the union itself. If the list were cut off before the union, nothing would show which branch
 * was meant.
 */
const MAX_COLLECTED = 500;
const MAX_REPORTED = 20;
Settings.Set({ maxErrors: MAX_COLLECTED });

/** Throws `invalid_request` with one violation per mistake when the value does not match. The value is never quoted. */
export type Check = (value: unknown) => void;

/** Returns a check against `schema`, compiled on first use. `prefix` precedes the JSON pointers, as in `query/limit`. */
export function createCheck(schema: TSchema, prefix = ''): Check {
  const check = new SchemaCheck(schema);
  return (value) => {
    if (check.matches(value)) return;
    throw invalidRequest(explained(check, value, schema, prefix));
  };
}

/**
 * Finding the mistakes costs about a hundred times as much as the check, some 10 µs for each value, so large values are not
 * searched.
 */
const MAX_EXPLAINED_VALUES = 1500;
/**
 * A longer text is cut before mistakes are searched, because each pattern of the schema is tried on it, and a pattern overflows the stack of
 * regular expressions on some megabytes.
 */
const MAX_EXPLAINED_CHARS = 128 * 1024;
/** The characters of all texts in which mistakes are searched. */
const MAX_EXPLAINED_CHARS_TOGETHER = 1024 * 1024;
const SOMEWHERE: Violation = {
  path: '',
  message: 'does not match the schema, and is too large to say where',
};

/** Returns the violations of a value that does not match the schema. */
function explained(
  check: SchemaCheck<TSchema>,
  value: unknown,
  schema: TSchema,
  prefix: string,
): Violation[] {
  const { values, chars } = sizeOf(value);
  if (values > MAX_EXPLAINED_VALUES) return [SOMEWHERE];
  if (chars <= MAX_EXPLAINED_CHARS) return violationsOf(check.errorsOf(value), schema, prefix);
  const cut: string[] = [];
  const short = withShortTexts(value, prefix === '' ? '/' : prefix, cut);
  if (sizeOf(short).chars > MAX_EXPLAINED_CHARS_TOGETHER) return [SOMEWHERE];
  const found = violationsOf(check.errorsOf(short), schema, prefix);
  if (found.length > 0) return found;
  // Nothing else is wrong, so the mistake is in one of the long texts.
  return cut
    .slice(0, MAX_REPORTED)
    .map((path) => ({ path, message: 'is too long, or does not match the schema' }));
}

/** Returns how many values there are in a value, and how many characters its texts have. Stops counting values above the limit. */
function sizeOf(value: unknown): { readonly values: number; readonly chars: number } {
  let chars = 0;
  const toVisit = [value];
  for (let visited = 0; visited < toVisit.length && toVisit.length <= MAX_EXPLAINED_VALUES; visited++) {
    const next = toVisit[visited];
    if (typeof next === 'string') chars += next.length;
    else if (typeof next === 'object' && next !== null)
      for (const member of Object.values(next)) toVisit.push(member);
  }
  return { values: toVisit.length, chars };
}

/** Returns a copy in which long texts are cut. Adds their paths to `cut`. `path` is the path of the value, with a slash at its end. */
function withShortTexts(value: unknown, path: string, cut: string[]): unknown {
  if (typeof value === 'string') {
    if (value.length <= MAX_EXPLAINED_CHARS) return value;
    cut.push(path.slice(0, -1));
    return cutText(value, 0, MAX_EXPLAINED_CHARS);
  }
  if (typeof value !== 'object' || value === null) return value;
  const inner = (name: string, member: unknown) =>
    withShortTexts(member, `${path}${escapePointer(name)}/`, cut);
  if (Array.isArray(value)) return value.map((item, at) => inner(String(at), item));
  return Object.fromEntries(Object.entries(value).map(([name, member]) => [name, inner(name, member)]));
}

/** Returns the error for these violations. The text of the error is the first violation. */
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
  return [...found.values()].slice(0, MAX_REPORTED);
}

function describe(error: SchemaError, schema: TSchema, prefix: string): Violation[] {
  const path = prefix === '' ? error.instancePath : prefix + error.instancePath.slice(1);
  const separator = prefix !== '' && error.instancePath === '' ? '' : '/';
  if (error.keyword === 'minProperties') {
    const names = Object.keys(schemaAt(schema, error.schemaPath)?.properties ?? {});
    return [{ path, message: `must have at least one of ${names.join(', ')}` }];
  }
  if (error.keyword === 'propertyNames') return []; // The validator also reports the violation of each single name.
  if (error.keyword === 'pattern') {
    const words = wordsOf(String(error.params.pattern));
    const isName = error.schemaPath.endsWith('/propertyNames');
    return [{ path, message: isName ? `is not an allowed name: it ${words}` : words }];
  }
  return describeSchemaError(error, path, path + separator);
}

interface ObjectSchema {
  readonly properties?: object;
}

function schemaAt(schema: TSchema, schemaPath: string): ObjectSchema | undefined {
  let place: unknown = schema;
  for (const step of schemaPath.split('/').slice(1)) {
    place = (place as Readonly<Record<string, unknown>> | undefined)?.[step];
  }
  return place as ObjectSchema | undefined;
}

/**
 * Removes the mistakes of union branches that the caller did not mean. A failed union reports the mistakes of all its branches. A
 * branch is ruled out by its tag (a `const`), by its type or by the names of its members; the remaining branch is the one that was
 * meant. If none remains, the mistake lists the tags or types that the union accepts.
 */
function withoutLosingBranches(errors: readonly SchemaError[]): readonly SchemaError[] {
  const losing = new Map<string, Branch>();
  for (const union of errors.filter(isUnion)) {
    const within = errorsWithin(union, errors);
    const lose = (branch: string) =>
      losing.set(`${union.instancePath} ${branch}`, { place: union.instancePath, schemaPath: branch });
    const left = new Set(within.map((error) => branchOf(union, error)));
    for (const error of within) {
      const branch = branchOf(union, error);
      const isTag =
        error.keyword === 'const' && /^(\/properties\/[^/]+)?$/.test(error.schemaPath.slice(branch.length));
      if (isTag || (error.keyword === 'type' && error.instancePath === union.instancePath)) {
        lose(branch);
        left.delete(branch);
      }
    }
    for (const branch of unlikeBranches(union, within, left)) lose(branch);
  }
  if (losing.size === 0) return errors.filter((error) => !isUnion(error));
  const lost = [...losing.values()];
  const kept = errors.filter((error) => !lost.some((branch) => isOf(branch, error)));
  return kept.flatMap((error) => {
    if (!isUnion(error)) return [error];
    return errorsWithin(error, kept).length > 0 ? [] : choicesOf(error, errorsWithin(error, errors));
  });
}

/**
 * Returns the branches whose members have other names than those of the value: the branches that do not know a member of the value if
 * another branch knows all, and then the branches that miss a member if another branch misses none.
 */
function unlikeBranches(
  union: SchemaError,
  within: readonly SchemaError[],
  left: ReadonlySet<string>,
): readonly string[] {
  const having = (keyword: SchemaError['keyword'], among: readonly string[]) => {
    const errors = within.filter((one) => one.keyword === keyword && one.instancePath === union.instancePath);
    const branches = new Set(errors.map((error) => branchOf(union, error)));
    const unlike = among.filter((branch) => branches.has(branch));
    return unlike.length === among.length ? [] : unlike;
  };
  const strange = having('additionalProperties', [...left]);
  const known = [...left].filter((branch) => !strange.includes(branch));
  return [...strange, ...having('required', known)];
}

/** Returns one mistake that lists the tags that the union accepts, at their path, or its types. */
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

/** A branch of a union at one place in the value. The place is needed, because all elements of a list share their schema. */
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
