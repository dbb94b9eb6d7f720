/**
 * Examples of answers without an example of their own. They are made from schemas and from the examples of the contained records.
 * So a new resource needs no file here: its lists show the example of their items.
 */
import { AT } from './example-values.ts';

/** The keywords of a schema from which an example is made. */
interface Schema {
  readonly $id?: string;
  readonly type?: string;
  readonly format?: string;
  readonly pattern?: string;
  readonly minimum?: number;
  readonly const?: unknown;
  readonly enum?: readonly unknown[];
  readonly default?: unknown;
  readonly examples?: readonly unknown[];
  readonly anyOf?: readonly Schema[];
  readonly items?: Schema;
  readonly properties?: Readonly<Record<string, Schema>>;
  readonly required?: readonly string[];
}

type Examples = Readonly<Record<string, unknown>>;

/** Returns the examples in `known`, and one for each of these schemas that has a name and no example. */
export function withDerivedExamples(schemas: readonly object[], known: Examples): Examples {
  const derived = (schemas as readonly Schema[])
    .filter(({ $id, examples }) => $id !== undefined && !($id in known) && examples === undefined)
    .map((schema) => [schema.$id, exampleOf(schema, schema.$id ?? '', known)]);
  return { ...Object.fromEntries(derived), ...known };
}

/**
 * Returns an example of the schema of the member `name`. Throws for a schema with a pattern, which needs `examples` of its own.
 */
function exampleOf(schema: Schema, name: string, known: Examples): unknown {
  const { $id, examples, anyOf, properties, required = [], items = {} } = schema;
  if ($id !== undefined && $id in known) return known[$id];
  const [given] = [...(examples ?? []), ...(schema.enum ?? [])];
  if (given !== undefined) return given;
  if ('const' in schema) return schema.const;
  if ('default' in schema) return schema.default;
  if (name === 'nextCursor') return null; // the example of a page is the last one
  if (anyOf?.[0] !== undefined) return exampleOf(anyOf[0], name, known);
  switch (schema.type) {
    case 'object': {
      const members = Object.entries(properties ?? {}).filter(([member]) => required.includes(member));
      return Object.fromEntries(
        members.map(([member, itsSchema]) => [member, exampleOf(itsSchema, member, known)]),
      );
    }
    case 'array':
      return [exampleOf(items, name, known)];
    case 'integer':
    case 'number':
      return schema.minimum ?? 1;
    case 'boolean':
      return true;
    case 'string':
      if (schema.format === 'date-time') return AT;
      if (schema.pattern !== undefined && !new RegExp(schema.pattern).test(name))
        throw new Error(`The schema of ${name} needs \`examples\`: no example is made for its pattern.`);
      return name;
    default:
      return null;
  }
}
