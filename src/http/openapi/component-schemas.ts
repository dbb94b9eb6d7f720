import { isDeepStrictEqual } from 'node:util';
import { invariant } from '#src/base/errors/invariant.ts';

type Json = Readonly<Record<string, unknown>>;

/** Whether a schema describes data from clients to the server, or from the server to clients. */
export type Direction = 'request' | 'response';

const COMPONENTS = '#/components/schemas/';
/**
 * Keywords whose value is a schema, a list of schemas, or a map of schemas. All other keywords are
 * copied unchanged.
 */
const WITH_SCHEMA = new Set(['items', 'additionalProperties', 'propertyNames', 'not']);
const WITH_LIST = new Set(['anyOf', 'oneOf', 'allOf']);
const WITH_MAP = new Set(['properties', 'patternProperties']);

/**
 * The named schemas of an OpenAPI document. A schema with an `$id` is listed here once and referenced elsewhere. Schemas are
 * written as code generators understand them:
 *
 * - Responses may have further members, so that later versions can add some; requests may not.
 * - A union whose variants a member tells apart is `oneOf` with a `discriminator`.
 * - A boolean that has only one value is a boolean: generators know constants of strings only.
 * - A rule that one member of a group is required is left to the description, and so is a default; a secret has the format
 *   `password`. Titles are left out: they are labels for forms, and generators would turn them into names.
 *
 * All request schemas are converted before the response schemas. If a schema differs between requests and responses, the schema for responses is named `…Output`.
 */
export class ComponentSchemas {
  readonly #replacements: Readonly<Record<string, object>>;
  readonly #examples: Json;
  readonly #requests: Record<string, Json> = {};
  readonly #responses: Record<string, Json> = {};

  /**
   * `replacements` are used in place of schemas with these names, for shapes that are not defined
   * in `src/contract/wire`. `examples` are values by the names of response schemas.
   */
  constructor(replacements: Readonly<Record<string, object>> = {}, examples: Json = {}) {
    this.#replacements = replacements;
    this.#examples = examples;
  }

  /** All schemas, sorted by name. */
  get all(): Json {
    const schemas = Object.entries({ ...this.#requests, ...this.#responses });
    return Object.fromEntries(schemas.sort(([a], [b]) => (a < b ? -1 : 1)));
  }

  /**
   * Adds a schema and returns its name. Throws when a different schema for the same direction
   * already has this name.
   */
  add(name: string, schema: Json, direction: Direction): string {
    const requested = this.#requests[name];
    if (direction === 'response' && requested !== undefined) {
      if (isDeepStrictEqual(requested, schema)) return name;
      return this.#addTo(this.#responses, `${name}Output`, schema);
    }
    return this.#addTo(direction === 'request' ? this.#requests : this.#responses, name, schema);
  }

  #addTo(schemas: Record<string, Json>, name: string, schema: Json): string {
    const known = schemas[name];
    const isFree = known === undefined || isDeepStrictEqual(known, schema);
    invariant(isFree, 'Two different schemas have different names.', name);
    schemas[name] = schema;
    return name;
  }

  /** Returns the schema as plain JSON, with references in place of named schemas. */
  convert(schema: object, direction: Direction): Json {
    const { $id, $ref, ...rest } = schema as Json;
    if (typeof $id === 'string') {
      const example = direction === 'response' && $id in this.#examples ? [this.#examples[$id]] : undefined;
      const named = {
        ...this.#convertKeywords(this.#replacements[$id] ?? rest, direction),
        ...(example && { examples: example }),
      };
      return { $ref: COMPONENTS + this.add($id, named, direction) };
    }
    if (typeof $ref === 'string') return { ...rest, $ref: $ref.startsWith('#') ? $ref : COMPONENTS + $ref };
    return this.#convertKeywords(rest, direction);
  }

  #convertKeywords(schema: object, direction: Direction): Json {
    const converted: Record<string, unknown> = {};
    for (const [keyword, value] of Object.entries(schema)) {
      if (keyword === 'title' || (keyword === 'anyOf' && isGroupOfRequired(value))) continue;
      converted[keyword] = this.#convertValue(keyword, value, direction);
    }
    if (typeof converted.const === 'boolean') delete converted.const;
    writeTags(schema as Json, converted);
    writeOpenness(converted, direction);
    if (converted.writeOnly === true) {
      delete converted.writeOnly;
      if (converted.type === 'string') converted.format ??= 'password';
    }
    return converted;
  }

  #convertValue(keyword: string, value: unknown, direction: Direction): unknown {
    if (value instanceof RegExp) return value.source;
    if (WITH_SCHEMA.has(keyword) && isObject(value)) return this.convert(value, direction);
    if (WITH_LIST.has(keyword) && Array.isArray(value))
      return value.map((one: object) => this.convert(one, direction));
    if (!WITH_MAP.has(keyword) || !isObject(value)) return value;
    const members = Object.entries(value).map(([name, member]) => [
      name,
      isObject(member) ? describeDefault(this.convert(member, direction)) : member,
    ]);
    return Object.fromEntries(members);
  }
}

/**
 * Moves a member's default into its description, because openapi-typescript treats members with a
 * default as required.
 */
function describeDefault(member: Json): Json {
  if (!('default' in member)) return member;
  const { default: value, description = '', ...rest } = member;
  return { ...rest, description: `${String(description)} Default: \`${String(value)}\`.`.trim() };
}

/** Writes a union with a `discriminator` as `oneOf`, with the variant for each tag. */
function writeTags(schema: Json, converted: Record<string, unknown>): void {
  const { discriminator, anyOf } = schema;
  if (!isObject(discriminator) || !Array.isArray(anyOf) || !Array.isArray(converted.anyOf)) return;
  const references: readonly Json[] = converted.anyOf;
  const tag = String(discriminator.propertyName);
  const mapping = anyOf.map((variant: Json, index) => [tagOf(variant, tag), references[index]?.$ref]);
  delete converted.anyOf;
  converted.oneOf = references;
  converted.discriminator = { propertyName: tag, mapping: Object.fromEntries(mapping) };
}

function tagOf({ properties }: Json, tag: string): string {
  const member = isObject(properties) ? properties[tag] : undefined;
  invariant(isObject(member) && member.const !== undefined, 'Each variant has a constant as its tag.', tag);
  return String(member.const);
}

/** Lets objects that clients receive have further members, and documents objects without members as open. */
function writeOpenness(converted: Record<string, unknown>, direction: Direction): void {
  if (converted.type !== 'object') return;
  if (direction === 'response' && converted.additionalProperties === false)
    delete converted.additionalProperties;
  if (converted.properties === undefined) converted.additionalProperties ??= true;
}

function isGroupOfRequired(branches: unknown): boolean {
  const isRequired = (branch: unknown) => isObject(branch) && Object.keys(branch).join() === 'required';
  return Array.isArray(branches) && branches.every(isRequired);
}

function isObject(value: unknown): value is Json {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}
