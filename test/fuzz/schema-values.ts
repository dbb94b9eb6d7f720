/** Makes values that match a JSON Schema of the OpenAPI document, or almost match it. */
import type { SeededRandom } from '#test/support/random.ts';
import { odd } from './odd-values.ts';

/** A JSON Schema. */
export type Schema = Readonly<Record<string, unknown>>;

const MAX_DEPTH = 6;

/** Returns a value for the schema. `resolve` returns the schema for a `$ref`. */
export function sampleOf(
  schema: Schema,
  random: SeededRandom,
  resolve: (ref: string) => Schema,
  depth = 0,
): unknown {
  const inner = (one: unknown) => sampleOf(asSchema(one), random, resolve, depth + 1);
  if (typeof schema.$ref === 'string') return inner(resolve(schema.$ref));
  for (const choice of [schema.anyOf, schema.oneOf])
    if (Array.isArray(choice)) return inner(random.pick<unknown>(choice));
  if (Array.isArray(schema.allOf)) return Object.assign({}, ...schema.allOf.map(inner)) as unknown;
  if ('const' in schema) return schema.const;
  if (Array.isArray(schema.enum)) return random.pick<unknown>(schema.enum);
  const type = Array.isArray(schema.type) ? random.pick<unknown>(schema.type) : schema.type;
  switch (type) {
    case 'object':
      return objectOf(schema, random, inner, depth);
    case 'array': {
      const length = depth > MAX_DEPTH ? 0 : random.below(4);
      return Array.from({ length }, () => inner(schema.items));
    }
    case 'string':
      return textOf(schema, random);
    case 'integer':
    case 'number':
      return numberOf(schema, random);
    case 'boolean':
      return random.is(0.5);
    case 'null':
      return null;
    default:
      return odd(random);
  }
}

function objectOf(
  schema: Schema,
  random: SeededRandom,
  inner: (one: unknown) => unknown,
  depth: number,
): unknown {
  const required = Array.isArray(schema.required) ? schema.required : [];
  const members = Object.entries(asSchema(schema.properties))
    .filter(([name]) => required.includes(name) || (depth < MAX_DEPTH && random.is(0.5)))
    .map(([name, member]) => [name, inner(member)] as const);
  const more = schema.additionalProperties;
  if (typeof more === 'object' && random.is(0.5)) members.push([`x${random.below(99)}`, inner(more)]);
  return Object.fromEntries(members);
}

function textOf(schema: Schema, random: SeededRandom): string {
  const { minLength = 0, maxLength = 40 } = schema as { minLength?: number; maxLength?: number };
  if (random.is(0.1)) return String(odd(random));
  if (random.is(0.1)) return 'a'.repeat(Math.min(maxLength, 5000));
  const letters = random.is(0.7) ? 'abcxyz019_-' : 'aé\u0000"\\\n😀{}%/.';
  const length = Math.max(minLength, random.below(Math.min(maxLength, 20) + 1));
  return Array.from({ length }, () => random.pick([...letters])).join('');
}

function numberOf(schema: Schema, random: SeededRandom): number {
  const { minimum = 0, maximum = 1000 } = schema as { minimum?: number; maximum?: number };
  return random.pick([
    minimum,
    maximum,
    minimum - 1,
    maximum + 1,
    minimum + random.below(maximum - minimum + 1),
  ]);
}

/** Returns the value as a schema. */
export function asSchema(value: unknown): Schema {
  return typeof value === 'object' && value !== null ? (value as Schema) : {};
}
