import { isDeepStrictEqual } from 'node:util';

type Json = Readonly<Record<string, unknown>>;

const COMPONENTS = '#/components/schemas/';

/** The named schemas of an OpenAPI document. A schema with an `$id` is listed here once and referenced elsewhere. */
export class ComponentSchemas {
  readonly #schemas: Record<string, Json> = {};

  /** All schemas, sorted by name. */
  get all(): Json {
    return Object.fromEntries(Object.entries(this.#schemas).sort(([a], [b]) => (a < b ? -1 : 1)));
  }

  /** Adds a schema. Throws when a different schema has this name. */
  add(name: string, schema: Json): void {
    const known = this.#schemas[name];
    if (known !== undefined && !isDeepStrictEqual(known, schema))
      throw new Error(`two different schemas are named ${name}`);
    this.#schemas[name] = schema;
  }

  /** Returns the schema as plain JSON, with references in place of named schemas. */
  convert(schema: object): Json {
    const copy: Record<string, unknown> = {};
    for (const [keyword, value] of Object.entries(schema)) copy[keyword] = this.#convertValue(value);
    const { $id, $ref, ...rest } = copy;
    if (typeof $id === 'string') {
      this.add($id, rest);
      return { $ref: COMPONENTS + $id };
    }
    if (typeof $ref === 'string' && !$ref.startsWith('#')) return { ...rest, $ref: COMPONENTS + $ref };
    return copy;
  }

  #convertValue(value: unknown): unknown {
    if (Array.isArray(value)) return value.map((item) => this.#convertValue(item));
    if (value instanceof RegExp) return value.source;
    return typeof value === 'object' && value !== null ? this.convert(value) : value;
  }
}
