/** Values that a JSON Schema of the OpenAPI document describes, or nearly. */
import { type Chance, odd } from './random.ts';

export type Schema = Readonly<Record<string, unknown>>;

const DEEPEST = 6;

/** `resolve` finds the schema behind a `$ref`. */
export function sampleOf(
  schema: Schema,
  chance: Chance,
  resolve: (ref: string) => Schema,
  depth = 0,
): unknown {
  const inner = (one: unknown) => sampleOf(asSchema(one), chance, resolve, depth + 1);
  if (typeof schema.$ref === 'string') return inner(resolve(schema.$ref));
  for (const choice of [schema.anyOf, schema.oneOf])
    if (Array.isArray(choice)) return inner(chance.of<unknown>(choice));
  if (Array.isArray(schema.allOf)) return Object.assign({}, ...schema.allOf.map(inner)) as unknown;
  if ('const' in schema) return schema.const;
  if (Array.isArray(schema.enum)) return chance.of<unknown>(schema.enum);
  const type = Array.isArray(schema.type) ? chance.of<unknown>(schema.type) : schema.type;
  switch (type) {
    case 'object':
      return objectOf(schema, chance, inner, depth);
    case 'array': {
      const length = depth > DEEPEST ? 0 : chance.below(4);
      return Array.from({ length }, () => inner(schema.items));
    }
    case 'string':
      return textOf(schema, chance);
    case 'integer':
    case 'number':
      return numberOf(schema, chance);
    case 'boolean':
      return chance.is(0.5);
    case 'null':
      return null;
    default:
      return odd(chance);
  }
}

function objectOf(schema: Schema, chance: Chance, inner: (one: unknown) => unknown, depth: number): unknown {
  const required = Array.isArray(schema.required) ? schema.required : [];
  const members = Object.entries(asSchema(schema.properties))
    .filter(([name]) => required.includes(name) || (depth < DEEPEST && chance.is(0.5)))
    .map(([name, member]) => [name, inner(member)] as const);
  const more = asSchema(schema.patternProperties);
  for (const member of Object.values(more))
    if (chance.is(0.5)) members.push([`x${chance.below(99)}`, inner(member)]);
  return Object.fromEntries(members);
}

function textOf(schema: Schema, chance: Chance): string {
  const { minLength = 0, maxLength = 40 } = schema as { minLength?: number; maxLength?: number };
  if (chance.is(0.1)) return String(odd(chance));
  if (chance.is(0.1)) return 'a'.repeat(Math.min(maxLength, 5000));
  const letters = chance.is(0.7) ? 'abcxyz019_-' : 'aé\u0000"\\\n😀{}%/.';
  const length = Math.max(minLength, chance.below(Math.min(maxLength, 20) + 1));
  return Array.from({ length }, () => chance.of([...letters])).join('');
}

function numberOf(schema: Schema, chance: Chance): number {
  const { minimum = 0, maximum = 1000 } = schema as { minimum?: number; maximum?: number };
  return chance.of([
    minimum,
    maximum,
    minimum - 1,
    maximum + 1,
    minimum + chance.below(maximum - minimum + 1),
  ]);
}

export function asSchema(value: unknown): Schema {
  return typeof value === 'object' && value !== null ? (value as Schema) : {};
}
