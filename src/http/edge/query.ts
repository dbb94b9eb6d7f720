import type { TSchema } from 'typebox';
import type { Violation } from '#src/core/errors.ts';
import type { QuerySchema } from '#src/wire/operations/operation.ts';
import { createCheck, invalidRequest } from './violations.ts';

const MAX_VIOLATIONS = 8;

/** Returns the value of a raw query string, with the schema's defaults filled in. */
export type QueryParser = (text: string) => unknown;

/** Returns the parser of a page: its links get parameters such as `utm_source` on their way, and it has none of its own. */
export function createPageQueryParser(): QueryParser {
  const none = Object.freeze({});
  return () => none;
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

/** Returns the word as the property's type. One that is not of the type stays a string for the schema check to refuse. */
function parseWord(property: TSchema, word: string): unknown {
  const type = 'type' in property ? property.type : undefined;
  if (type === 'integer') return /^-?\d{1,15}$/.test(word) ? Number(word) : word;
  if (type === 'boolean' && (word === 'true' || word === 'false')) return word === 'true';
  return word;
}
