import { SECRET_NAME } from '#src/contract/wire/notebook.ts';
import { openEndOf, paramNamesOf, type Route } from '../route.ts';
import type { ComponentSchemas } from './component-schemas.ts';

type Json = Readonly<Record<string, unknown>>;

/** Request headers that HTTP clients and proxies set, or that belong to the credential, so that they are no parameters. */
const OF_TRANSPORT: ReadonlySet<string> = new Set(['authorization', 'host', 'x-forwarded-proto']);
const TEXT: Json = { type: 'string' };
/** Headers whose spelling differs from the pattern of `Content-Range`. */
const SPELLINGS: Readonly<Record<string, string>> = { etag: 'ETag', 'last-event-id': 'Last-Event-ID' };

/** Returns whether a request may carry an idempotency key. */
export function takesIdempotencyKey({ method, access }: Route): boolean {
  return method === 'POST' && typeof access !== 'string';
}

/**
 * Returns whether `If-None-Match` is useful: reads get only changes, and creations replace nothing. Other operations evaluate the
 * header as well (RFC 9110, section 13.1.2), but with `*` they are always refused.
 */
function takesIfNoneMatch({ method, responses }: Route): boolean {
  return method === 'GET' || (method === 'PUT' && 201 in responses);
}

/**
 * Returns the parameters of an operation: path, query and headers. Every request may have `X-Request-Id`. It is left out, because
 * generators would make it an argument of every call.
 */
export function parametersOf(route: Route, schemas: ComponentSchemas): Json[] {
  return [
    ...paramNamesOf(route.path).map((name) => ({
      name,
      in: 'path',
      required: true,
      description:
        openEndOf(route.path)?.name === name
          ? `${describePathParameter(name)} It may contain slashes, as they are or percent-encoded.`
          : describePathParameter(name),
      schema: name === 'name' && route.path.includes('/secrets/') ? { ...TEXT, pattern: SECRET_NAME } : TEXT,
    })),
    ...Object.entries(route.query?.properties ?? {}).map(([name, schema]) => ({
      name,
      in: 'query',
      required: (route.query?.required?.includes(name) ?? false) && !('default' in schema),
      ...('type' in schema && schema.type === 'array' && { style: 'form', explode: false }),
      schema: schemas.convert(schema, 'request'),
    })),
    ...Object.entries(route.headers ?? {})
      .filter(([name]) => !OF_TRANSPORT.has(name) && (name !== 'if-none-match' || takesIfNoneMatch(route)))
      .map(([name, description]) => ({
        name: usualHeaderName(name),
        in: 'header',
        description,
        ...(route.requiredHeaders?.includes(name) && { required: true }),
        schema: TEXT,
      })),
    ...(takesIdempotencyKey(route) ? [IDEMPOTENCY_KEY] : []),
  ];
}

/** Returns `The slug.` for `slug` and `The id of the run.` for `runId`. */
function describePathParameter(name: string): string {
  const words = name.replace(/[A-Z]/g, (letter) => ` ${letter.toLowerCase()}`);
  return words.endsWith(' id') ? `The id of the ${words.slice(0, -' id'.length)}.` : `The ${words}.`;
}

const IDEMPOTENCY_KEY: Json = {
  name: 'Idempotency-Key',
  in: 'header',
  description:
    'A request that is repeated with the same key and body within 24 hours takes effect once. The repetition gets the ' +
    'first response again.',
  schema: { type: 'string', minLength: 1, maxLength: 255, pattern: '^[\\x21-\\x7e]+$' },
};

/** Returns a header's usual spelling, such as `Content-Range` for `content-range`. */
export function usualHeaderName(name: string): string {
  return SPELLINGS[name] ?? name.replace(/\b[a-z]/g, (letter) => letter.toUpperCase());
}
