import type { TObject, TSchema } from 'typebox';
import type { Violation } from '#src/core/errors.ts';
import { createCheck, invalidRequest } from './violations.ts';

/** Turns a raw query string (undefined when there is none) into the value its schema describes, defaults filled in. */
export type QueryParser = (text: string | undefined) => unknown;

/** Strict: an unknown or repeated parameter is `invalid_request`. Without a schema every parameter is unknown. */
export function createQueryParser(schema: TObject | undefined): QueryParser {
  const properties = schema?.properties ?? {};
  const check = schema === undefined ? undefined : createCheck(schema, 'query/');
  const defaults = Object.freeze(defaultsOf(properties));
  return (text) => {
    if (text === undefined || text === '') {
      check?.(defaults);
      return defaults;
    }
    const value: Record<string, unknown> = { ...defaults };
    const seen = new Set<string>();
    const wrong: Violation[] = [];
    for (const [name, word] of new URLSearchParams(text)) {
      if (!Object.hasOwn(properties, name))
        wrong.push({ path: `query/${name}`, message: 'is not a known parameter' });
      else if (seen.has(name)) wrong.push({ path: `query/${name}`, message: 'is given twice' });
      else value[name] = read(properties[name]!, word);
      seen.add(name);
    }
    if (wrong.length > 0) throw invalidRequest(wrong.slice(0, 8));
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

/** A word that does not read as the property's type stays a string, and the schema check then says what is wrong. */
function read(property: TSchema, word: string): unknown {
  const type = 'type' in property ? property.type : undefined;
  if (type === 'integer') return /^-?\d{1,15}$/.test(word) ? Number(word) : word;
  if (type === 'boolean' && (word === 'true' || word === 'false')) return word === 'true';
  return word;
}
