import type { TSchema } from 'typebox';
import type { Violation } from '#src/base/errors/errors.ts';
import type { QuerySchema } from '#src/contract/wire/operations/operation.ts';
import { createCheck, invalidRequest } from './violations.ts';

const MAX_VIOLATIONS = 8;

/** Returns the value of a raw query string, with the schema's defaults filled in. */
export type QueryParser = (text: string) => unknown;

/**
 * Returns the query parser of a page. It ignores unknown parameters, such as `utm_source` that links acquire, and returns the
 * declared ones, if there are any.
 */
export function createPageQueryParser(schema: QuerySchema | undefined): QueryParser {
  const own = schema === undefined ? [] : Object.keys(schema.properties);
  const parse = createQueryParser(schema);
  return (text) => {
    if (own.length === 0 || text === '') return parse('');
    const sent = new URLSearchParams(text);
    const known = own.flatMap((name) => {
      const value = sent.get(name);
      return value === null ? [] : [[name, value] as [string, string]];
    });
    return parse(new URLSearchParams(known).toString());
  };
}

/**
 * Returns a strict parser: it throws `invalid_request` for unknown and repeated parameters and for values that do not
 * match. Without a schema every parameter is unknown.
 */
export function createQueryParser(schema: QuerySchema | undefined): QueryParser {
  const properties = schema?.properties ?? {};
  const check = schema === undefined ? undefined : createCheck(schema, 'query/');
  const defaults = Object.freeze(defaultsOf(properties));
  return (text) => {
    if (text === '') {
      check?.(defaults);
      return defaults;
    }
    const value: Record<string, unknown> = { ...defaults };
    const seen = new Set<string>();
    const violations: Violation[] = [];
    for (const [name, word] of new URLSearchParams(text)) {
      if (!Object.hasOwn(properties, name))
        violations.push({ path: `query/${name}`, message: 'is not a known parameter' });
      else if (seen.has(name)) violations.push({ path: `query/${name}`, message: 'is given twice' });
      else value[name] = parseWord(properties[name]!, word);
      seen.add(name);
    }
    if (violations.length > 0) throw invalidRequest(violations.slice(0, MAX_VIOLATIONS));
    check?.(value);
    return value;
  };
}

function defaultsOf(properties: Readonly<Record<string, TSchema>>): Record<string, unknown> {
  const values: Record<string, unknown> = {};
  for (const [name, property] of Object.entries(properties)) {
    if ('default' in property) values[name] = property.default;
  }
  return values;
}

/**
 * Returns the text as a value of the property's type. A text of another form stays a string, which
 * the schema check refuses.
 */
function parseWord(property: TSchema, word: string): unknown {
  const type = 'type' in property ? property.type : undefined;
  if (type === 'integer') return /^-?\d{1,15}$/.test(word) ? Number(word) : word;
  if (type === 'array') return word.split(',');
  if (type === 'boolean' && (word === 'true' || word === 'false')) return word === 'true';
  return word;
}
